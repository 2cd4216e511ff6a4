"""Head and loss at the supervised positions only, chunk by chunk.

Shape legend: B rows, T positions of a row, S supervised positions, D hidden size, V rows of the head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from smmd_lightning.types import IGNORE_INDEX

Score = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""`(logits_SV, targets_S) -> outputs`, each output with S first: a loss that treats every position by itself."""


def score_supervised(
    hidden_BTD: Tensor, labels_BT: Tensor, head: Callable[[Tensor], Tensor], score: Score, chunk: int
) -> tuple[Tensor, ...]:
    """Passes the hidden states of supervised positions through head and loss.

    Chunks are recomputed in the backward pass, so that the logits of one chunk exist at a time.

    Args:
        hidden_BTD: Last hidden states.
        labels_BT: `IGNORE_INDEX` where nothing is supervised; aligned with the inputs, shifted here.
        head: Hidden states (S, D) -> logits (S, V).
        score: The loss of every position.
        chunk: Most positions that pass through the head at once.

    Returns:
        The outputs of `score` for all S supervised positions, row by row.
    """
    supervised_BT = labels_BT[:, 1:] != IGNORE_INDEX
    hidden_SD = hidden_BTD[:, :-1][supervised_BT]
    targets_S = labels_BT[:, 1:][supervised_BT]

    def head_and_score(hidden: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return score(head(hidden), targets)

    hidden_chunks, target_chunks = hidden_SD.split(chunk), targets_S.split(chunk)
    if len(hidden_chunks) == 1:
        return head_and_score(hidden_SD, targets_S)  # recomputing a single chunk would save no memory
    outputs = [
        checkpoint(head_and_score, hidden, targets, use_reentrant=False, preserve_rng_state=False)
        if torch.is_grad_enabled()
        else head_and_score(hidden, targets)
        for hidden, targets in zip(hidden_chunks, target_chunks, strict=True)
    ]
    return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))
