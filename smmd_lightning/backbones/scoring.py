"""Head and loss at the supervised positions only, chunk by chunk.

Shape legend: B rows, T positions of a row, S supervised positions, D hidden size, V rows of the head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from smmd_lightning.types import IGNORE_INDEX

Score = Callable[[Tensor, Tensor], tuple[Tensor, ...]]
"""`(logits_SV, targets_S) -> outputs`, each output with S first: a loss that treats every position by itself."""
Watch = Callable[[Tensor, tuple[Tensor, ...]], None]
"""`(hidden_SD, outputs of score) -> None`: looks at what was computed from which hidden states."""


def score_supervised(
    hidden_BTD: Tensor,
    labels_BT: Tensor,
    head: Callable[[Tensor], Tensor],
    score: Score,
    chunk: int,
    watch: Watch | None = None,
) -> tuple[Tensor, ...]:
    """Passes the hidden states of supervised positions through head and loss.

    Chunks are recomputed in the backward pass, so that the logits of one chunk exist at a time.

    Args:
        hidden_BTD: Last hidden states.
        labels_BT: `IGNORE_INDEX` where nothing is supervised; aligned with the inputs, shifted here.
        head: Hidden states (S, D) -> logits (S, V).
        score: The loss of every position.
        chunk: Most positions that pass through the head at once.
        watch: Called with the hidden states (S, D) and the outputs, both joined to the graph, before they are returned.

    Returns:
        The outputs of `score` for all S supervised positions, row by row.
    """
    supervised_BT = labels_BT[:, 1:] != IGNORE_INDEX
    hidden_SD = hidden_BTD[:, :-1][supervised_BT]
    targets_S = labels_BT[:, 1:][supervised_BT]

    if watch is not None and not hidden_SD.requires_grad:  # nothing below the head is trained
        hidden_SD.requires_grad_()
    outputs = _score_chunks(hidden_SD.split(chunk), targets_S.split(chunk), head, score)
    if watch is not None:
        watch(hidden_SD, outputs)
    return outputs


def _score_chunks(
    hidden_chunks: Sequence[Tensor], target_chunks: Sequence[Tensor], head: Callable[[Tensor], Tensor], score: Score
) -> tuple[Tensor, ...]:
    def head_and_score(hidden: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return score(head(hidden), targets)

    if len(hidden_chunks) == 1:
        return head_and_score(hidden_chunks[0], target_chunks[0])  # recomputing a single chunk would save no memory
    outputs = [
        checkpoint(head_and_score, hidden, targets, use_reentrant=False, preserve_rng_state=False)
        if torch.is_grad_enabled()
        else head_and_score(hidden, targets)
        for hidden, targets in zip(hidden_chunks, target_chunks, strict=True)
    ]
    return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))
