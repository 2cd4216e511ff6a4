"""What a model does behind its last hidden state, and whether we do the same.

Unusual here: nothing trusts a list of architectures. `adjust_logits` knows the adjustments that configurations name,
and `why_not_split` compares the result with the model's own logits.

Shape legend: T positions of one row, S any number of positions, V rows of the head.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from smmd_lightning.backbones.loading import runnable_here, special_ids
from smmd_lightning.compat.of_transformers import attention_of

Encode = Callable[[dict[str, Tensor]], Tensor]
"""Model inputs -> last hidden states (B, T, D)."""
Head = Callable[[Tensor], Tensor]
"""Hidden states (S, D) -> logits (S, V)."""

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
def why_not_split(causal: Any, encode: Encode, head: Head) -> str | None:
    """Compares `head(encode(x))` with the model's own logits on a few tokens.

    Args:
        causal: The Hugging Face model.
        encode: Runs it up to its head.
        head: Its head.

    Returns:
        None when both agree, else the reason why the model cannot be split at its head.
    """
    with evaluating(causal), runnable_here(causal):
        inputs = {"input_ids": plain_tokens(causal, 4)[None]}
        own_TV = causal(**inputs, use_cache=False).logits[0].float()
        try:
            ours_TV = head(encode(inputs)[0]).float()
        except (AttributeError, RuntimeError, TypeError) as error:
            return f"it cannot be split ({type(error).__name__}: {error})"
    if ours_TV.shape != own_TV.shape:
        return f"its logits are {tuple(own_TV.shape)}, those of its head {tuple(ours_TV.shape)}"
    difference = float((ours_TV - own_TV).norm() / own_TV.norm().clamp_min(1e-12))
    if difference <= TOLERANCE.get(causal.dtype, 1e-4):
        return None
    return f"its logits differ from head(encode(x)) by {difference:.2g} (relative)"


def splits_at_head(causal: Any, encode: Encode, head: Head, name: str) -> bool:
    """Whether the model can be split at its head; a model that cannot is named in a warning.

    Args:
        causal: The Hugging Face model.
        encode: Runs it up to its head.
        head: Its head.
        name: What the user calls the model.
    """
    reason = why_not_split(causal, encode, head)
    if reason is not None:
        warnings.warn(
            f"{type(causal).__name__} ({name}) runs its own forward and makes logits at every position, which costs "
            f"memory: {reason}",
            stacklevel=3,
        )
    return reason is None


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


def plain_tokens(causal: Any, count: int) -> Tensor:
    """Returns ids (count,) of tokens to which the model gives no role.

    Args:
        causal: The Hugging Face model; the ids lie on its device.
        count: How many.
    """
    special, rows = special_ids(causal.config), causal.get_output_embeddings().weight.shape[0]
    plain = [token for token in range(3, rows) if token not in special][:count]
    return torch.tensor(plain, device=causal.device)


LENGTHS = (5, 3, 4)
"""Tokens of the rows that are tried."""


def is_packed(inputs: dict[str, Tensor]) -> bool:
    """Whether inputs are packed rows: positions of their own, and no mask that padding would need."""
    return "position_ids" in inputs and "attention_mask" not in inputs


@torch.no_grad()
def check_packing(causal: Any, encode: Encode) -> None:
    """Compares the hidden states of packed rows with those of the same rows by themselves.

    Args:
        causal: The Hugging Face model, on its device.
        encode: Runs it up to its head.

    Raises:
        ValueError: They differ, so tokens of one row see those of another.
    """
    ids_T = plain_tokens(causal, sum(LENGTHS))
    positions_T = torch.cat([torch.arange(length, device=causal.device) for length in LENGTHS])
    with evaluating(causal):
        packed_TD = encode({"input_ids": ids_T[None], "position_ids": positions_T[None]})[0].float()
        alone = [encode({"input_ids": row[None]})[0].float() for row in ids_T.split(LENGTHS)]
    difference = float((packed_TD - torch.cat(alone)).norm() / packed_TD.norm().clamp_min(1e-12))
    if difference > TOLERANCE.get(causal.dtype, 1e-4):
        raise ValueError(
            f"{type(causal).__name__} with attention={attention_of(causal.config)!r} mixes rows that are packed "
            f"into one (hidden states differ by {difference:.2g}, relative). Set pack to false, or the backbone's "
            "attention to one that keeps them apart: sdpa, eager, flash_attention_2."
        )
