"""Cross-entropy and numeric logits of a chunk of positions, from logits that are read twice and copied once.

Unusual: `log_softmax`, two index selections and their backward passes would make five tensors of the logits' shape.
Here the logits themselves are kept, and the backward pass makes one tensor: their gradient. Both passes go over blocks
of rows, in float32 whatever the logits' type, so no float32 copy of half-precision logits exists.

Shape legend: S positions, V rows of the head, K numeric positions among them, N numeric tokens, P pairs of
a position and a token, K N of them or fewer.

One real example, what the objective does for each chunk::

    ce_S, numeric_KN, log_normalizer_K = supervised_scores(head(hidden_SD), targets_S, rows_K, vocabulary.token_ids)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_ELEMENTS = {"cpu": 1 << 21, "other": 1 << 26}
"""Logits that are in float32 at one time: few enough for a CPU's cache, enough to keep a GPU busy."""


def supervised_scores(
    logits_SV: Tensor, targets_S: Tensor, rows_K: Tensor, ids_N: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute cross-entropies, and for numeric targets what the numeric losses need.

    Args:
        logits_SV: (S, V) logits of any floating type.
        targets_S: (S,) int64 true tokens.
        rows_K: (K,) int64 which of the positions have a numeric target.
        ids_N: (N,) int64 the numeric tokens.

    Returns:
        The cross-entropies -log softmax(logits)[target] (S,), the numeric logits (K, N) and the logarithm of the
        softmax's denominator over the whole head (K,): all at least float32. Differentiable once.

    Example:
        >>> ce_S, numeric_KN, log_normalizer_K = supervised_scores(
        ...     torch.zeros(2, 4), torch.tensor([1, 3]), torch.tensor([1]), torch.tensor([2, 3])
        ... )
        >>> ce_S.exp(), numeric_KN, log_normalizer_K.exp()
        (tensor([4., 4.]), tensor([[0., 0.]]), tensor([4.]))
    """
    # One flat index and `index_select`: on a CPU four times as fast as a pair of indices, three times as `gather`.
    place_P = (rows_K[:, None] * logits_SV.shape[1] + ids_N).flatten()
    ce_S, log_normalizer_S, numeric_P = _SupervisedScores.apply(logits_SV, targets_S, place_P)
    return ce_S, numeric_P.view(len(rows_K), len(ids_N)), log_normalizer_S[rows_K]


def picked_scores(logits_SV: Tensor, targets_S: Tensor, row_P: Tensor, token_P: Tensor) -> tuple[Tensor, Tensor]:
    """Compute cross-entropies, and the log-probabilities of chosen tokens.

    Args:
        logits_SV: (S, V) logits of any floating type.
        targets_S: (S,) int64 true tokens.
        row_P: (P,) int64 positions.
        token_P: (P,) int64 a token at each of them.

    Returns:
        The cross-entropies (S,), and log softmax(logits) of the pairs (P,): both at least float32. Differentiable once.
    """
    ce_S, log_normalizer_S, picked_P = _SupervisedScores.apply(
        logits_SV, targets_S, row_P * logits_SV.shape[1] + token_P
    )
    return ce_S, picked_P - log_normalizer_S[row_P]


class _SupervisedScores(torch.autograd.Function):
    """d ce / dz = softmax(z) - onehot(target), d log_normalizer / dz = softmax(z); numeric logits are a selection."""

    @staticmethod
    def forward(ctx: Any, logits_SV: Tensor, targets_S: Tensor, place_P: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        exact = torch.promote_types(logits_SV.dtype, torch.float32)
        ce_S = logits_SV.new_empty(len(logits_SV), dtype=exact)
        log_normalizer_S = torch.empty_like(ce_S)
        for rows in _blocks(logits_SV):
            block_RV, targets_R1 = logits_SV[rows].to(exact), targets_S[rows, None]
            ce_S[rows] = -block_RV.log_softmax(1).gather(1, targets_R1).squeeze(1)
            log_normalizer_S[rows] = ce_S[rows] + block_RV.gather(1, targets_R1).squeeze(1)
        ctx.save_for_backward(logits_SV, targets_S, place_P)
        return ce_S, log_normalizer_S, logits_SV.reshape(-1).index_select(0, place_P).to(exact)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_ce_S: Tensor, grad_log_normalizer_S: Tensor, grad_picked_P: Tensor
    ) -> tuple[Tensor, None, None]:
        logits_SV, targets_S, place_P = ctx.saved_tensors
        grad_SV = torch.empty_like(logits_SV, memory_format=torch.contiguous_format)
        weight_S1 = (grad_ce_S + grad_log_normalizer_S)[:, None]
        for rows in _blocks(logits_SV):
            pull_RV = logits_SV[rows].to(weight_S1.dtype).softmax(1).mul_(weight_S1[rows])
            grad_SV[rows] = pull_RV.scatter_add_(1, targets_S[rows, None], -grad_ce_S[rows, None])
        grad_SV.view(-1).scatter_add_(0, place_P, grad_picked_P.to(grad_SV.dtype))
        return grad_SV, None, None


def _blocks(logits_SV: Tensor) -> Iterator[slice]:
    most = BLOCK_ELEMENTS.get(logits_SV.device.type, BLOCK_ELEMENTS["other"])
    rows = max(1, most // max(1, logits_SV.shape[1]))
    return (slice(first, first + rows) for first in range(0, len(logits_SV), rows))
