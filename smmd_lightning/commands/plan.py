"""`smmd-plan`: what a configuration would need on GPUs, counted on a machine that need not have one.

    smmd-plan --config configs/experiment/clock_qwen2_5_vl_7b_lora.yaml --memory 40
    smmd-plan --config configs/experiment/clock_qwen2_5_vl_7b_full.yaml --memory 80 --gpus 8 --sharded

Unusual here: model, data and settings are the run's own. The model is built without weights, a few samples are drawn
and put through its processor, and the decoder's forward pass is traced, so tokens and activations are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smmd_lightning.checkpoints.atomic import close_umask

GB = 1e9
RESERVE = 0.08
"""Share of a GPU's memory that its context, the allocator's gaps and temporary tensors take."""
LOOKED_AT = 8
"""Samples whose length is counted."""


@dataclass(frozen=True)
class MeasuredBatch:
    """What a micro-batch is made of.

    Attributes:
        rows: B, its rows.
        positions: T, the longest of the samples looked at.
        supervised: Supervised positions of all rows.
        image_tokens: Tokens of one picture, on average; 0 for text.
        patches: Patches of all pictures.
    """

    rows: int
    positions: int
    supervised: int
    image_tokens: float
    patches: int


def look_at(data: Any, image_id: int | None) -> MeasuredBatch:
    """Collates a few training samples.

    Args:
        data: A `NumericDataModule`.
        image_id: Id of the token that stands for a part of a picture; None for text.
    """
    from smmd_lightning.types import SampleKey

    count = min(LOOKED_AT, data.size("train"))
    batch = data.collator([data.example("train", SampleKey(0, index)) for index in range(count)])
    ids, images = (
        batch.inputs["input_ids"],
        sum(len(data.example("train", SampleKey(0, i)).images) for i in range(count)),
    )
    pixels = batch.inputs.get("pixel_values")
    found = 0 if image_id is None else int((ids == image_id).sum())
    patches = 0
    if pixels is not None:  # a row for each patch (Qwen), or pictures of (3, height, width)
        patches = len(pixels) if pixels.ndim == 2 else found
    rows = data.batch_size
    return MeasuredBatch(
        rows=rows,
        positions=int(ids.shape[1]),
        supervised=round(int((batch.labels >= 0).sum()) * rows / count),
        image_tokens=found / images if images else 0.0,
        patches=round(patches * rows / count),
    )


def plan(
    config: Sequence[str], *, gpus: int = 1, sharded: bool = False, compute: str = "bfloat16", flops: float = 2e14
) -> dict[str, Any]:
    """Counts what a run needs.

    Args:
        config: Arguments of the command line after the subcommand: `["--config", "…", …]`.
        gpus: Processes.
        sharded: Whether weights, gradients and optimizer are spread over them (FSDP2).
        compute: Type of the activations.
        flops: Operations that one GPU really does in a second.

    Returns:
        Plain values by name; `bytes` holds those of one GPU by part, `total` among them.

    Raises:
        ValueError: A setting is wrong, as in a run.
    """
    from smmd_lightning.backbones.checking import check_names
    from smmd_lightning.backbones.footprint import footprint
    from smmd_lightning.cli import main as command_line

    here = [
        "--trainer.accelerator=cpu",
        "--trainer.devices=1",
        "--trainer.strategy=auto",
        "--trainer.precision=32-true",
    ]
    made = command_line(["fit", *config, *here, "--trainer.logger=false"], run=False)
    backbone, data = made.model.backbone, made.datamodule
    skeleton: Any = check_names(backbone)
    batch = look_at(data, getattr(skeleton.config, "image_token_id", None))
    optimizer = type(made.model.optimizer([("w", next(skeleton.parameters()))])).__name__
    states = 2 if "Adam" in optimizer else 1
    need = footprint(backbone, batch.rows, batch.positions, batch.supervised, compute, states, batch.patches)
    shards = gpus if sharded else 1
    window = made.trainer.accumulate_grad_batches
    steps = made.trainer.max_steps
    if steps < 0:
        steps = (made.trainer.max_epochs or 1) * -(-data.size("train") // (batch.rows * gpus * window))
    return {
        "parameters": need.parameters,
        "trained": need.trained,
        "image_tokens": batch.image_tokens,
        "positions": batch.positions,
        "steps": steps,
        "samples": steps * batch.rows * gpus * window,
        "operations": need.operations * steps * window * gpus,
        "hours": need.operations * steps * window / flops / 3600,
        "bytes": {
            "weights": need.weights // shards,
            "gradients": need.gradients // shards,
            "optimizer": need.optimizer // shards,
            "activations": need.activations,
            "head": need.head,
            "total": need.total(shards),
        },
        "advice": advice(backbone, batch.rows, sharded),
    }


def advice(backbone: Any, rows: int, sharded: bool) -> list[str]:
    """Lists the settings that would save memory and are not in use, the cheapest first."""
    found = []
    if not backbone.gradient_checkpointing:
        found.append("model.backbone.init_args.gradient_checkpointing: true (keeps one tensor per block)")
    if rows > 1:
        found.append("a smaller data.init_args.batch_size with more trainer.accumulate_grad_batches (same results)")
    if backbone.dtype == "float32":
        found.append("model.backbone.init_args.dtype: bfloat16 (halves the weights)")
    if backbone.adapter is None:
        found.append("model.backbone.init_args.adapter: {rank: 16} (no gradients or optimizer state of the base)")
        if not sharded:
            found.append("--gpus N --sharded, with configs/trainer/fsdp2.yaml (weights, gradients, optimizer over N)")
    elif backbone.quantization is None:
        found.append("model.backbone.init_args.quantization: {bits: 4} (a quarter of bfloat16's weights)")
    return found


def main(args: Sequence[str] | None = None) -> None:
    """Runs `smmd-plan`; leaves with an error where the run cannot fit.

    Args:
        args: Arguments. None: those of this process.
    """
    close_umask()
    parser = argparse.ArgumentParser(prog="smmd-plan", description="Says what a run needs, without a GPU.")
    parser.add_argument("--config", required=True, help="the run's YAML; more settings may follow, as for fit")
    parser.add_argument("--gpus", type=int, default=1, help="number of GPUs")
    parser.add_argument(
        "--sharded", action="store_true", help="FSDP2: weights, gradients and optimizer spread over them"
    )
    parser.add_argument("--memory", type=float, default=80.0, help="GB of one GPU (default: 80)")
    parser.add_argument(
        "--flops", type=float, default=2e14, help="operations a GPU really does a second (default: 2e14)"
    )
    parser.add_argument(
        "--compute", choices=("bfloat16", "float32"), default="bfloat16", help="type of the activations"
    )
    given, settings = parser.parse_known_args(args)
    try:
        if given.gpus < 1 or given.memory <= 0 or given.flops <= 0:
            raise ValueError("--gpus, --memory and --flops must be above 0")
        found = plan(
            ["--config", given.config, *settings],
            gpus=given.gpus,
            sharded=given.sharded,
            compute=given.compute,
            flops=given.flops,
        )
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"smmd-plan: {error}")
    share = found["trained"] / found["parameters"]
    print(f"parameters   {found['parameters'] / 1e6:,.1f} M, trained {share:.2%}")
    print(f"a row        {found['positions']} tokens, {found['image_tokens']:.0f} of them for a picture")
    for name, size in found["bytes"].items():
        print(f"{name:<12} {size / GB:8.2f} GB per GPU")
    print(f"steps        {found['steps']:,}, {found['samples']:,} samples")
    print(f"operations   {found['operations']:.3g}: {found['hours']:.2f} hours at {given.flops:.3g} a second and GPU")
    usable = given.memory * (1 - RESERVE)
    if found["bytes"]["total"] / GB > usable:
        hints = "".join(f"\n  {hint}" for hint in found["advice"]) or "\n  a larger GPU"
        sys.exit(
            f"smmd-plan: {found['bytes']['total'] / GB:.1f} GB do not fit into the {usable:.1f} GB that a GPU of "
            f"{given.memory:g} GB leaves. What helps:{hints}"
        )
