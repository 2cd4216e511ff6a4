"""Whether a model keeps rows apart that are packed into one.

Unusual here: no list says which attention implementations do. Two short rows are run packed and by themselves, and must
have the same hidden states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from smmd_lightning.backbones.heads import TOLERANCE, evaluating

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

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
