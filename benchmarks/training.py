"""Training, end to end: our trainer against TRL's SFTTrainer and against a Trainer on full logits.

    python -m benchmarks.training --model smollm2-135m --gsm8k FOLDER --method lora     # or full, or clocks

Same samples in the same order, same batch, same optimizer (fused AdamW, clipping at 1), float32, no activation
checkpointing. Ours trains with CE + 0.3 SMMD and draws, renders and tokenises as it goes; the peers train with CE alone
on rows that were tokenised before, which favours them. The cross-entropy of the first step must agree.

Unusual: since TRL 1.16 its only loss is the chunked one (`fused_lm_head`); its former stock loss is what transformers'
Trainer computes from the model's own full logits, so that is the third variant.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from benchmarks.harness import Case, faster, gib, run, span, table
from benchmarks.training_peers import LEARNING_RATE, Stopwatch, data, full_logits, trl


def ours(case: Case) -> dict[str, Any]:
    """SMMDModule in Lightning's Trainer, as `train.py` sets it up, without loggers and checkpoints."""
    import torch
    from lightning.pytorch import Callback, Trainer, seed_everything

    from smmd_lightning import SMMDLoss
    from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
    from smmd_lightning.module import SMMDModule

    seed_everything(0, verbose=False)
    watch = Stopwatch()

    class Watching(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
            watch.step()
            watch.losses.append(float(trainer.callback_metrics["train/ce"]))

    kind = VisionLanguageBackbone if case["method"] == "clocks" else LanguageBackbone
    adapter = LoRA(rank=16, alpha=32) if case["method"] == "lora" else None
    backbone = kind(case["model"], adapter=adapter, dtype=case["dtype"], from_scratch=case.get("from_scratch", False))

    def optimizer(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0, fused=True)

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            max_steps=case["steps"],
            accelerator=case.get("accelerator", "cpu"),
            devices=1,
            precision="bf16-true" if case["dtype"] == "bfloat16" else "32-true",
            gradient_clip_val=1.0,
            callbacks=[Watching()],
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            limit_val_batches=0,
            use_distributed_sampler=False,
        )
        trainer.fit(SMMDModule(backbone, SMMDLoss(), 0.3, optimizer=optimizer), data(case))
    return watch.result(case["batch"])


def cases(arguments: argparse.Namespace) -> list[Case]:
    """One method on one model."""
    clocks = arguments.method == "clocks"  # images cannot be packed
    chosen = [name for name in VARIANTS if name not in [*arguments.without, "ours_packed" * clocks]]
    common: Case = {"variants": chosen, "dtype": "float32", "gsm8k": arguments.gsm8k, "method": arguments.method}
    if arguments.toy:
        return [{**common, "model": "tiny:qwen2.5-vl" if clocks else "tiny:llama", "batch": 2, "steps": 2}]
    model = "tiny:qwen2.5-vl" if clocks else arguments.model
    return [
        {
            **common,
            "model": model,
            "batch": 16 if clocks else arguments.batch,
            "steps": 31 if clocks else arguments.steps,
        }
    ]


def difference(measured: dict[str, Any], mine: dict[str, Any]) -> float:
    """Relative difference of the first step's cross-entropy."""
    return abs(measured["loss"] - mine["loss"]) / abs(mine["loss"])


def check(found: dict[str, Any]) -> None:
    """Compares the first step's cross-entropy; in bfloat16 also weights that each draws for itself.

    Raises:
        RuntimeError: A peer's differs from ours.
    """
    for name in VARIANTS:
        if name in found and (off := difference(found[name], found["ours"])) > TOLERANCE[found["case"]["dtype"]]:
            raise RuntimeError(f"{name}: the first step's cross-entropy differs from ours by {off:.2g}.")


def compared(found: dict[str, Any], theirs: dict[str, Any]) -> str:
    """How much faster ours is than a peer, packed too."""
    packed = f"; packed {faster(found['ours_packed'], theirs)}" if "ours_packed" in found else ""
    return faster(found["ours"], theirs) + packed


def render(finished: list[dict[str, Any]]) -> str:
    """One row a variant."""
    rows = []
    for found in finished:
        case, mine = found["case"], found["ours"]
        for name, measured in ((name, found[name]) for name in VARIANTS if name in found):
            rows.append(
                [
                    f"{case['method']}, {case['model']}, {case['batch']} rows",
                    name.replace("_", " "),
                    f"{1 / measured['median']:.2f}",
                    span(measured),
                    "" if name.startswith("ours") else compared(found, measured),
                    gib(measured["peak"]),
                    "" if name.startswith("ours") else f"{mine['peak'] / measured['peak']:.2f}",
                    f"{difference(measured, mine):.1e}",
                ]
            )
    head = ["what", "trainer", "samples/s", "a sample", "ours is faster", "peak", "ours / this"]
    return table([*head, "first CE differs by"], rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds `--model`, `--gsm8k`, `--method`, `--batch`, `--steps` and `--without`."""
    parser.add_argument("--model", default="smollm2-135m", help="language model to train")
    parser.add_argument("--gsm8k", help="folder with GSM8K's train.jsonl; word problems are drawn without it")
    parser.add_argument("--method", choices=["lora", "full", "clocks"], default="lora")
    parser.add_argument("--batch", type=int, default=4, help="rows of a step")
    parser.add_argument("--without", choices=list(VARIANTS), nargs="*", default=[], help="variants to leave out")
    parser.add_argument("--steps", type=int, default=4, help="optimizer steps; the first is not timed")


def ours_packed(case: Case) -> dict[str, Any]:
    """Ours with `pack: true`: the same rows without padding."""
    return ours({**case, "pack": True})


TOLERANCE = {"float32": 2e-5, "bfloat16": 2e-2}
VARIANTS = {"ours": ours, "ours_packed": ours_packed, "trl": trl, "full_logits": full_logits}

if __name__ == "__main__":
    run("training", __doc__, VARIANTS, cases, render, options, check)
