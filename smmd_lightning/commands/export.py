"""`smmd-export` and `smmd-consolidate`: what a run leaves, in the forms that others read.

Unusual: a checkpoint needs nothing beside itself. Its settings say which model it belongs to; weights it lacks (frozen
ones) come from there. A folder of many processes is read in one, without any process group.

    smmd-export --ckpt runs/a/checkpoints/best.ckpt --out models/a            # LoRA merged into the weights
    smmd-export --ckpt runs/a/checkpoints/best.ckpt --out adapters/a --adapter
    smmd-consolidate runs/a/checkpoints/last.ckpt --out last_whole.ckpt
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from smmd_lightning.backbones.generation import greedy_config
from smmd_lightning.backbones.merging import dequantize, merge_adapter
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.checkpoints.atomic import close_umask, new_folder, write_file, write_text
from smmd_lightning.checkpoints.sharded import META
from smmd_lightning.commands.model_card import model_card
from smmd_lightning.module import SMMDModule

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

DTypeName = Literal["float32", "bfloat16", "float16"]


def export(checkpoint: str | Path, out: str | Path, *, adapter: bool = False, dtype: DTypeName | None = None) -> Path:
    """Writes a Hugging Face folder that answers as the trained model did, with a card that says how to ask it.

    It holds weights, configuration, generation settings (greedy, with the run's end tokens and `max_new_tokens`), and
    the processor with its chat template and the run's `image_options`.

    Args:
        checkpoint: A checkpoint's file or folder.
        out: Where to; must be empty or not exist.
        adapter: Write a LoRA adapter alone (with the processor) instead of merging it into the weights.
        dtype: Type of the written weights. None: the type they were trained in.

    Returns:
        The folder.

    Raises:
        ValueError: The folder is not empty, or there is no adapter to write.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty. Choose another --out, or move it away.")
    module = SMMDModule.load_from_checkpoint(checkpoint, map_location="cpu")
    backbone = module.backbone
    if adapter and backbone.adapter is None:
        raise ValueError(f"{checkpoint} holds no LoRA adapter; leave --adapter out to write the whole model.")
    if adapter and backbone.adapter is not None and backbone.adapter.also_train:
        raise ValueError(
            f"{checkpoint} was trained with also_train={backbone.adapter.also_train}, which an adapter's files cannot "
            "hold; leave --adapter out to write the whole model."
        )
    if backbone.adapter is not None and not adapter:
        if backbone.quantization is not None:
            dequantize(backbone)
        backbone.model = merge_adapter(backbone.model)
    _forget_gguf(backbone.causal)
    if dtype is not None:
        _cast(backbone, getattr(torch, dtype))
    settings = {key: value for key, value in dict(module.hparams).items() if not key.startswith("_")}
    asking = module.asking or {}
    generation = greedy_config(backbone.causal.generation_config, module.max_new_tokens)
    generation.eos_token_id = _ends(generation.eos_token_id, asking.get("stop_ids", []))
    backbone.causal.generation_config = generation
    processor = load_processor(
        backbone.path,
        revision=backbone.revision,
        trust_remote_code=backbone.trust_remote_code,
        options=asking.get("image_options"),
    )
    tokenizer = getattr(processor, "tokenizer", processor)
    card = model_card(
        path=backbone.path,
        sees=hasattr(processor, "image_processor"),
        bos=tokenizer.bos_token,
        has_template=getattr(processor, "chat_template", None) is not None,
        adapter=adapter,
        asking=asking,
        settings=settings,
        run=Path(checkpoint).parent.parent,
    )
    with new_folder(folder) as draft:
        backbone.save_pretrained(draft)
        processor.save_pretrained(draft)
        generation.save_pretrained(draft)
        write_text(draft / "README.md", card)  # peft writes one too
        write_text(
            draft / "smmd_lightning.json",
            json.dumps({**settings, "asking": asking}, indent=2, default=str) + "\n",
        )
    return folder


def _ends(own: int | list[int] | None, others: list[int]) -> int | list[int] | None:
    """The ids that end an answer: the model's own, then those with which training ended answers."""
    ids = [] if own is None else list(own) if isinstance(own, (list, tuple)) else [own]
    ids += [other for other in others if other not in ids]
    return None if not ids else ids[0] if len(ids) == 1 else ids


def _forget_gguf(causal: Any) -> None:
    """Lets a model be written that was read from a GGUF file: transformers refuses, but its weights are plain now."""
    if getattr(causal, "hf_quantizer", None) is not None:
        del causal.hf_quantizer, causal.config.quantization_config


def _cast(backbone: Backbone, dtype: torch.dtype) -> None:
    """Casts the weights; buffers such as rotary tables keep their type."""
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.data = parameter.data.to(dtype)
    backbone.config.dtype = dtype


def export_command(args: Sequence[str] | None = None) -> None:
    """Runs `smmd-export`.

    Args:
        args: Arguments. None: those of this process.
    """
    close_umask()
    parser = argparse.ArgumentParser(prog="smmd-export", description=(export.__doc__ or "").splitlines()[0])
    parser.add_argument("--ckpt", required=True, help="a checkpoint's file, or the folder of a sharded one")
    parser.add_argument("--out", required=True, help="folder to write, empty or not there yet")
    parser.add_argument("--adapter", action="store_true", help="write the LoRA adapter alone instead of merging it")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="type of the written weights")
    given = parser.parse_args(args)
    try:
        print(export(given.ckpt, given.out, adapter=given.adapter, dtype=given.dtype))
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"smmd-export: {error}")


def consolidate_command(args: Sequence[str] | None = None) -> None:
    """Runs `smmd-consolidate`.

    Args:
        args: Arguments. None: those of this process.
    """
    close_umask()
    from smmd_lightning.checkpoints.sharded import consolidate

    parser = argparse.ArgumentParser(
        prog="smmd-consolidate", description="Makes one ordinary checkpoint file of a sharded checkpoint's folder."
    )
    parser.add_argument("folder", help=f"the checkpoint's folder, with {META} in it")
    parser.add_argument("--out", required=True, help="file to write")
    parser.add_argument("--weights-only", action="store_true", help="leave the optimizer's state out")
    given = parser.parse_args(args)
    file = Path(given.out)
    try:
        if file.exists():
            raise ValueError(f"{file} exists. Choose another --out, or move it away.")
        checkpoint = consolidate(Path(given.folder), weights_only=given.weights_only)
        write_file(file, lambda opened: torch.save(checkpoint, opened))
        print(file)
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"smmd-consolidate: {error}")
