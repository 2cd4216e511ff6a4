"""Trained weights are kept in float32.

Unusual: a weight in bfloat16 has 8 bits, so an update below its 256th part is rounded away: at usual learning rates
most weights never move. Under mixed precision the trained weights of a model that is loaded in half precision are
therefore kept in float32, and only computing is done in half; frozen weights stay as they are. Elsewhere such a
training is refused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

HALF = (torch.bfloat16, torch.float16)


def check_trained_type(precision: str, sharded: bool, backbone: Any) -> None:
    """Refuses settings with which trained weights would be in half precision, before weights load.

    Args:
        precision: `trainer.precision`.
        sharded: Whether the weights are spread over processes.
        backbone: The backbone; `dtype` and `adapter` are looked at.

    Raises:
        ValueError: They would; says what to take.
    """
    if precision in ("bf16-true", "16-true"):
        raise ValueError(
            f"trainer.precision={precision} would keep trained weights in half precision, in which most updates are "
            f"rounded away. Take {precision.removesuffix('-true')}-mixed; the backbone's dtype decides about frozen "
            "weights."
        )
    low = backbone.dtype in ("bfloat16", "float16")
    whole = backbone.adapter is None or bool(backbone.adapter.also_train)
    if low and whole and (sharded or not precision.endswith("-mixed")):
        raise ValueError(half_precision(f"model.backbone.dtype={backbone.dtype}", sharded))


def keep_in_float32(backbone: nn.Module) -> None:
    """Converts a loaded backbone's trained weights to float32; for a run with mixed precision.

    Layer norms go with them, frozen ones too: behind a trained block their input is float32, and on CPUs torch refuses
    a norm in half precision then. The other way round it takes both.

    Args:
        backbone: Not sharded; other frozen weights keep their type.
    """
    for module in backbone.modules():
        norm = isinstance(module, nn.LayerNorm)
        for parameter in module.parameters(recurse=False):
            if (norm or parameter.requires_grad) and parameter.dtype in HALF:
                parameter.data = parameter.data.float()


def refuse_half_precision(trained: list[tuple[str, nn.Parameter]], sharded: bool) -> None:
    """Refuses to train weights in half precision, whatever brought them there (`dtype: auto` of a file, say).

    Args:
        trained: Names and weights.
        sharded: Whether they are spread over processes.

    Raises:
        ValueError: Some are; names the first of them.
    """
    low = [name for name, parameter in trained if parameter.dtype in HALF]
    if low:
        raise ValueError(half_precision(f"{len(low)} trained weights are in half precision ({low[0]}, …)", sharded))


def half_precision(what: str, sharded: bool) -> str:
    """The message: `what` is in half precision, and what to do about it."""
    advice = (
        "Take dtype: float32 for the backbone; the strategy's compute_dtype: bfloat16 still computes in it."
        if sharded
        else "Take trainer.precision=bf16-mixed, which keeps trained weights in float32, or dtype: float32."
    )
    return f"{what}: at usual learning rates most updates of such weights are rounded away. {advice}"
