"""What a model does behind its last hidden state, and whether we do the same.

Unusual here: nothing trusts a list of architectures. `adjust_logits` knows the adjustments that configurations name,
and `why_not_split` compares the result with the model's own logits.

Shape legend: T positions of one row, S any number of positions, V rows of the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}
"""Largest relative difference (of norms) between `head(encode(x))` and the model's own logits, by dtype."""


def adjust_logits(logits_SV: Tensor, config: Any) -> Tensor:
    """Applies the scaling and soft-capping that a configuration asks for.

    Args:
        logits_SV: What the head's matrix gives.
        config: Configuration of the language model.

    Examples:
        >>> from types import SimpleNamespace
        >>> adjust_logits(torch.tensor([4.0]), SimpleNamespace(logits_scaling=8.0))
        tensor([0.5000])
    """
    if (scale := getattr(config, "logit_scale", None)) is not None:  # Cohere
        logits_SV = logits_SV * scale
    if (divisor := getattr(config, "logits_scaling", None)) is not None:  # Granite
        logits_SV = logits_SV / divisor
    if (cap := getattr(config, "final_logit_softcapping", None)) is not None:  # Gemma 2 and later
        logits_SV = cap * torch.tanh(logits_SV / cap)
    return logits_SV


@torch.no_grad()
def why_not_split(backbone: Backbone) -> str | None:
    """Compares `head(encode(x))` with the model's own logits on a few tokens.

    Args:
        backbone: A loaded backbone.

    Returns:
        None when both agree, else the reason why the model cannot be split at its head.
    """
    from smmd_lightning.backbones.loading import runnable_here, special_ids

    causal: Any = backbone.causal
    with evaluating(backbone), runnable_here(causal):
        special = special_ids(causal.config)
        plain = [token for token in range(3, backbone.head_rows) if token not in special][:4]
        inputs = {"input_ids": torch.tensor([plain], device=causal.device)}
        own_TV = causal(**inputs, use_cache=False).logits[0].float()
        try:
            ours_TV = backbone.head(backbone.encode(inputs)[0]).float()
        except (AttributeError, RuntimeError, TypeError) as error:
            return f"it cannot be split ({type(error).__name__}: {error})"
    if ours_TV.shape != own_TV.shape:
        return f"its logits are {tuple(own_TV.shape)}, those of its head {tuple(ours_TV.shape)}"
    difference = float((ours_TV - own_TV).norm() / own_TV.norm().clamp_min(1e-12))
    if difference <= TOLERANCE.get(causal.dtype, 1e-4):
        return None
    return f"its logits differ from head(encode(x)) by {difference:.2g} (relative)"


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Puts a module into evaluation mode and every part back into its own mode afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


LENGTHS = (5, 3, 4)
"""Tokens of the rows that are tried."""


def is_packed(inputs: dict[str, Tensor]) -> bool:
    """Whether inputs are packed rows: positions of their own, and no mask that padding would need."""
    return "position_ids" in inputs and "attention_mask" not in inputs


@torch.no_grad()
def check_packing(backbone: Backbone) -> None:
    """Compares the hidden states of packed rows with those of the same rows by themselves.

    Args:
        backbone: A loaded backbone, on its device.

    Raises:
        ValueError: They differ, so tokens of one row see those of another.
    """
    from smmd_lightning.backbones.loading import special_ids

    causal = backbone.causal
    special = special_ids(causal.config)
    plain = [token for token in range(3, backbone.head_rows) if token not in special][: sum(LENGTHS)]
    ids_T = torch.tensor(plain, device=causal.device)
    positions_T = torch.cat([torch.arange(length, device=causal.device) for length in LENGTHS])
    with evaluating(backbone):
        packed_TD = backbone.encode({"input_ids": ids_T[None], "position_ids": positions_T[None]})[0].float()
        alone = [backbone.encode({"input_ids": row[None]})[0].float() for row in ids_T.split(LENGTHS)]
    difference = float((packed_TD - torch.cat(alone)).norm() / packed_TD.norm().clamp_min(1e-12))
    if difference > TOLERANCE.get(causal.dtype, 1e-4):
        raise ValueError(
            f"{type(causal).__name__} with attention={causal.config._attn_implementation!r} mixes rows that are packed "
            f"into one (hidden states differ by {difference:.2g}, relative). Set pack to false, or the backbone's "
            "attention to one that keeps them apart: sdpa, eager, flash_attention_2."
        )
