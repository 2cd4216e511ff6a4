"""One GPU, bfloat16: head and loss, and training, against Liger-Kernel's fused cross-entropy and TRL.

    bash benchmarks/gpu.sh            # about five minutes on one card; result in benchmarks/results/gpu.md
    bash benchmarks/gpu.sh --toy      # on a CPU at toy size, to see that the script works

Unusual: nothing is downloaded. The model is drawn from a configuration of Qwen2.5-0.5B's size, with the tokenizer of a
tiny preset. First of all loss and gradients of all variants are compared in float32; nothing is timed if they differ.
Peak memory is that of torch's allocator on the card.

Liger's variant computes cross-entropy alone, without a numeric loss, so in its cases ours does too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import head_and_loss, training
from benchmarks.harness import Case, run
from benchmarks.training_peers import full_logits, trl

SIZES = {
    "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
    "num_attention_heads": 14, "num_key_value_heads": 2, "max_position_embeddings": 4096, "tie_word_embeddings": True,
}  # fmt: skip
WITHOUT_LIGER = "**Liger-Kernel is not installed here: its variant was left out** (`pip install liger-kernel`)."


def head_liger(case: Case) -> dict[str, Any]:
    """Liger-Kernel's fused linear cross-entropy on supervised positions."""
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    hidden_BTD, weight_VD, labels_BT, _ = head_and_loss.material(case, case["device"])
    weight_VD.requires_grad_()
    fused = LigerFusedLinearCrossEntropyLoss()

    def loss() -> Any:
        return fused(weight_VD, hidden_BTD[:, :-1].flatten(0, 1), labels_BT[:, 1:].flatten())

    return head_and_loss.timed(case, loss, hidden_BTD, weight_VD)


def folder(toy: bool) -> str:
    """Writes a model folder of `SIZES` without weights: configuration, tokenizer, chat template."""
    from smmd_lightning.backbones.locate import locate

    tiny = Path(locate("tiny:qwen2"))
    if toy:
        return str(tiny)
    made = Path(tempfile.mkdtemp(prefix="smmd_gpu_"))
    for file in tiny.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, made)
    config = json.loads((made / "config.json").read_text())
    config.pop("layer_types", None)
    config.pop("head_dim", None)
    (made / "config.json").write_text(json.dumps({**config, **SIZES}))
    return str(made)


def cases(arguments: argparse.Namespace) -> list[Case]:
    """Numerics in float32, then head and loss, then training."""
    import torch

    toy = arguments.toy
    if not toy and not torch.cuda.is_available():
        raise SystemExit("benchmarks.gpu needs a CUDA device; --toy runs it on a CPU at toy size.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    heads = ["ours", "full_logits"]
    ce = [*heads, "liger"] if find_spec("liger_kernel") and device == "cuda" else heads
    small: Case = {**head_and_loss.TOY, "supervised": 12, "device": device, "runs": 1}
    found = [{**small, "variants": heads}, {**small, "numeric": False, "variants": ce}]
    passes: Case = {} if toy else {"rows": 8, "length": 2048, "passes": 10, "warm_up": 3}
    size: Case = {**(head_and_loss.TOY if toy else head_and_loss.QWEN), **passes, "device": device, "dtype": "bfloat16"}
    found.append({**size, "supervised": 12 if toy else 1024, "variants": heads})
    found += [{**size, "supervised": n, "numeric": False, "variants": ce} for n in ((12,) if toy else (32, 1024))]
    model: Case = {
        "model": folder(toy), "from_scratch": True, "dtype": "bfloat16", "gsm8k": None, "accelerator": "auto",
        "batch": 2 if toy else 16, "steps": 2 if toy else 21, "runs": 1 if toy else 2,
        "variants": ["train_ours", "train_trl", "train_full_logits"],
    }  # fmt: skip
    return [*found, *({**model, "method": method} for method in ("lora", "full"))]


def check(found: dict[str, Any]) -> None:
    """Compares whatever a case computed.

    Raises:
        RuntimeError: The variants differ.
    """
    if "method" in found["case"]:
        training.check(named(found))
    else:
        head_and_loss.check(found)


def named(found: dict[str, Any]) -> dict[str, Any]:
    """A training case with the names that `training` gives its variants."""
    return {name.removeprefix("train_"): measured for name, measured in found.items()}


def render(finished: list[dict[str, Any]]) -> str:
    """Two tables: head and loss with each peer, training."""
    heads = [found for found in finished if "method" not in found["case"]]
    parts = [
        "## Head and loss, CE + SMMD against full logits",
        head_and_loss.render([found for found in heads if found["case"].get("numeric", True)]),
        "## Head and loss, cross-entropy alone against full logits",
        head_and_loss.render([found for found in heads if not found["case"].get("numeric", True)]),
    ]
    fused = [{**found, "full_logits": found["liger"]} for found in heads if "liger" in found]
    parts += ["## Head and loss, cross-entropy alone against Liger-Kernel (the columns called full)"] if fused else []
    parts += [head_and_loss.render(fused) if fused else WITHOUT_LIGER]
    parts += ["## Training", training.render([named(found) for found in finished if "method" in found["case"]])]
    return "\n\n".join(parts)


VARIANTS = {
    "ours": head_and_loss.ours,
    "full_logits": head_and_loss.full_logits,
    "liger": head_liger,
    "train_ours": training.ours,
    "train_trl": trl,
    "train_full_logits": full_logits,
}

if __name__ == "__main__":
    if not find_spec("liger_kernel"):
        print(WITHOUT_LIGER, file=sys.stderr)
    run("gpu", __doc__, VARIANTS, cases, render, check=check)
