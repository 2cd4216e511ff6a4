"""Cross-entropy plus a weighted numeric loss, over supervised positions only.

    total = CE + lambda * L,   CE a mean over supervised tokens, L a mean over numeric target tokens

Both means are taken over one *optimizer step*: all micro-batches of the accumulation window, all processes. A
micro-batch contributes its sums divided by the step's counts, so however a step is cut up, its gradient is the same.

Unusual: the objective calls `Backbone.forward`, which calls `NumericObjective.score` back for each chunk of logits. The
head's weights may be sharded over processes (FSDP), and then they are whole only inside the backbone's own `forward`;
and chunks are scored and dropped one by one, so the logits of all positions never exist together.

Shape legend: B rows, T positions, S supervised positions, V rows of the head, K numeric positions, N numeric tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from lightning.pytorch.strategies import Strategy
from torch import Tensor, nn

from smmd_lightning.losses import NumericLoss, NumericPositions
from smmd_lightning.losses.cross_entropy import picked_scores, supervised_scores
from smmd_lightning.losses.positions import after_point
from smmd_lightning.losses.whole_number import divergence
from smmd_lightning.types import IGNORE_INDEX, LossOutput
from smmd_lightning.vocabulary import NumericVocabulary

Forward = Callable[..., tuple[Tensor, ...]]
"""`Backbone.forward`: (inputs, labels, score) -> the outputs of `score`, joined over chunks."""


class StepCounts(NamedTuple):
    """What one optimizer step divides by.

    Attributes:
        supervised: Supervised tokens of the whole step, over all processes, divided by the number of processes and
            by the number of micro-batches: the engine averages gradients over both.
        numeric: The same for numeric target tokens.
    """

    supervised: float
    numeric: float


class NumericObjective(nn.Module):
    """CE + `loss_weight` times the numeric loss, for any backbone.

    Args:
        numeric_loss: The numeric loss, bound to a vocabulary by `bind`. None: cross-entropy alone.
        loss_weight: Lambda, the weight of the numeric loss, at least 0.
    """

    index_V: Tensor | None
    ids_N: Tensor | None

    def __init__(self, numeric_loss: NumericLoss | None = None, loss_weight: float = 1.0) -> None:
        super().__init__()
        if not 0 <= loss_weight < math.inf:
            raise ValueError(f"loss_weight must be a finite number of at least 0, got {loss_weight}.")
        self.numeric_loss = numeric_loss
        self.loss_weight = loss_weight
        self.register_buffer("index_V", None, persistent=False)
        self.register_buffer("ids_N", None, persistent=False)

    def bind(self, vocabulary: NumericVocabulary | None, head_rows: int) -> None:
        """Makes the tables for a vocabulary and a head of `head_rows` rows.

        Args:
            vocabulary: The numeric tokens. None (allowed without a numeric loss only): none is numeric.
            head_rows: Rows of the model's output head.

        Raises:
            ValueError: A numeric token lies outside the head, or there is a numeric loss but no vocabulary.
        """
        if vocabulary is None:
            if self.numeric_loss is not None:
                raise ValueError(f"{type(self.numeric_loss).__name__} needs a numeric vocabulary.")
            return
        self.index_V = vocabulary.index_table(head_rows)
        self.ids_N = vocabulary.token_ids
        if self.numeric_loss is not None:
            self.numeric_loss.bind(vocabulary)

    def count(self, targets_S: Tensor) -> Tensor:
        """Returns the counts of supervised and of numeric targets, (2,) float64 on the targets' device."""
        numeric = targets_S.new_zeros(()) if self.index_V is None else (self._index(targets_S) >= 0).sum()
        return torch.stack([targets_S.new_tensor(targets_S.numel()), numeric]).double()

    def forward(
        self,
        backbone: Forward,
        inputs: dict[str, Tensor],
        labels_BT: Tensor,
        counts: StepCounts | None = None,
        share: float = 1.0,
    ) -> LossOutput:
        """Computes the loss of one micro-batch.

        Args:
            backbone: Called once with (inputs, labels, score).
            inputs: Keyword arguments of the model.
            labels_BT: (B, T) labels aligned with `input_ids`; they are shifted once, here and in the backbone alike.
            counts: What to divide by. None: this micro-batch's own counts.
            share: How much of `loss_weight` counts now, where it follows a schedule.

        Returns:
            The loss and its parts; metrics `ce`, `numeric` are means over this micro-batch's own positions, `ce_sum`
            and `numeric_sum` their sums.
        """
        if self.numeric_loss is not None and self.numeric_loss.whole_answers:
            ce_S, numeric_sum, numeric = self._whole_answers(self.numeric_loss, backbone, inputs, labels_BT)
        else:
            ce_S, numeric_sum, numeric = self._tokens(backbone, inputs, labels_BT)
        supervised, ce_sum = ce_S.numel(), ce_S.sum()
        per = counts or StepCounts(supervised, numeric)
        loss = ce_sum / max(per.supervised, 1e-9) if supervised else ce_sum
        weight = share * self.loss_weight / max(per.numeric, 1e-9) if numeric else 0.0
        loss = loss + weight * numeric_sum
        metrics = {
            "ce_sum": ce_sum.detach(),
            "numeric_sum": numeric_sum.detach(),
            "ce": ce_sum.detach() / max(supervised, 1),
            "numeric": numeric_sum.detach() / max(numeric, 1),
        }
        return LossOutput(loss=loss, metrics=metrics, supervised=supervised, numeric=numeric)

    def _tokens(self, backbone: Forward, inputs: dict[str, Tensor], labels_BT: Tensor) -> tuple[Tensor, Tensor, int]:
        """Returns the cross-entropies (S,), the sum of the costs of numeric tokens, and their number."""
        ce_S, numeric_logits_KN, log_normalizer_K = backbone(inputs, labels_BT, self._score)
        targets_BT = labels_BT[:, 1:]
        index_BT = self._index(targets_BT)
        row_K, column_K = torch.nonzero(index_BT >= 0, as_tuple=True)
        if self.numeric_loss is None:
            # Touched with weight zero, so that the graph has the same shape with and without a numeric loss.
            numeric_sum = numeric_logits_KN.sum() * 0.0
        else:
            point_id = None if self.numeric_loss.vocabulary is None else self.numeric_loss.vocabulary.point_id
            follows_K = after_point(targets_BT, row_K, column_K, point_id)
            positions = NumericPositions(row_K, column_K, log_normalizer_K, follows_K)
            numeric_sum = self.numeric_loss(numeric_logits_KN, index_BT[row_K, column_K], positions).sum()
        return ce_S, numeric_sum, row_K.numel()

    def _whole_answers(
        self, loss: Any, backbone: Forward, inputs: dict[str, Tensor], labels_BT: Tensor
    ) -> tuple[Tensor, Tensor, int]:
        """Returns the same for a loss with soft targets for whole answers."""
        targets = loss.soft_targets(labels_BT)
        supervised_BT = labels_BT[:, 1:] != IGNORE_INDEX
        targets_S = labels_BT[:, 1:][supervised_BT]
        # The backbone gets numbered positions in place of labels, and hands them to the score: a chunk knows its own.
        places_BT = torch.full_like(labels_BT, IGNORE_INDEX)
        places_BT[:, 1:][supervised_BT] = torch.arange(len(targets_S), device=labels_BT.device)

        def score(logits_CV: Tensor, place_C: Tensor) -> tuple[Tensor, Tensor]:
            first = int(place_C[0]) if len(place_C) else 0
            low, high = torch.searchsorted(targets.place_P, place_C.new_tensor([first, first + len(place_C)])).tolist()
            row_P, token_P = targets.place_P[low:high] - first, targets.token_P[low:high]
            return picked_scores(logits_CV, targets_S[place_C], row_P, token_P)

        ce_S, log_probability_P = backbone(inputs, places_BT, score)
        numeric = int((self._index(targets_S) >= 0).sum())
        return ce_S, divergence(log_probability_P, targets.mass_P), numeric

    def _score(self, logits_SV: Tensor, targets_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores a chunk of positions.

        Returns:
            The cross-entropies (S,); of the chunk's numeric targets the numeric logits (K, N), and the logarithm of
            the softmax's denominator over the whole head (K,), which some losses need.
        """
        if self.ids_N is None:
            rows_K = ids_N = targets_S.new_empty(0)
        else:
            rows_K, ids_N = torch.nonzero(self._index(targets_S) >= 0).squeeze(1), self.ids_N
        return supervised_scores(logits_SV, targets_S, rows_K, ids_N)

    def _index(self, targets: Tensor) -> Tensor:
        """Returns each target's place in the numeric vocabulary, -1 where it is no number or not supervised."""
        if self.index_V is None:
            return torch.full_like(targets, -1)
        index = self.index_V[targets.clamp(min=0)]
        return torch.where(targets == IGNORE_INDEX, -1, index)


class LossSums:
    """Sums of cross-entropy and numeric loss, and the positions that they are of, on this process.

    Attributes:
        supervised: Positions with cross-entropy.
        numeric: Positions with a numeric loss.

    Example:
        >>> LossSums(ce=torch.tensor(6.0), numeric_loss=torch.tensor(1.0), supervised=3, numeric=2).means(0.5)
        {'loss': tensor(2.2500), 'ce': tensor(2.), 'numeric': tensor(0.5000)}
    """

    def __init__(
        self, ce: Tensor | float = 0.0, numeric_loss: Tensor | float = 0.0, supervised: int = 0, numeric: int = 0
    ) -> None:
        self.ce = ce
        self.numeric_loss = numeric_loss
        self.supervised = supervised
        self.numeric = numeric

    def add(self, output: LossOutput) -> None:
        """Adds what one micro-batch gave."""
        self.ce = self.ce + _wide(output.metrics["ce_sum"])
        self.numeric_loss = self.numeric_loss + _wide(output.metrics["numeric_sum"])
        self.supervised += output.supervised
        self.numeric += output.numeric

    def means(self, loss_weight: float) -> dict[str, Tensor | float]:
        """Returns the means a position `ce` and `numeric` (0 where there is none), and `loss` of both together.

        Args:
            loss_weight: Lambda.
        """
        ce = self.ce / max(self.supervised, 1)
        numeric = self.numeric_loss / max(self.numeric, 1)
        return {"loss": ce + loss_weight * numeric, "ce": ce, "numeric": numeric}

    def reduce(self, strategy: Strategy, device: torch.device) -> LossSums:
        """Returns the sums over all processes; each must call this."""
        own = [float(self.ce), float(self.numeric_loss), self.supervised, self.numeric]
        place = "cpu" if device.type == "mps" else device  # a single process there, and no float64
        total = strategy.reduce(torch.tensor(own, dtype=torch.float64, device=place), reduce_op="sum")
        ce, numeric_loss, supervised, numeric = total.tolist()
        return LossSums(ce, numeric_loss, int(supervised), int(numeric))


class Window:
    """The open accumulation window of this process: its sums, and what its optimizer step divides by."""

    counts: StepCounts | None
    sums: LossSums
    micro_batches: int

    def __init__(self) -> None:
        self.open(None)

    def open(self, counts: StepCounts | None) -> None:
        """Starts a new window."""
        self.counts = counts
        self.sums = LossSums()
        self.micro_batches = 0

    def add(self, output: LossOutput) -> None:
        """Adds a micro-batch."""
        self.sums.add(output)
        self.micro_batches += 1


def _wide(sum_: Tensor) -> Tensor:
    return sum_ if sum_.device.type == "mps" else sum_.double()
