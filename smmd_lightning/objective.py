"""Cross-entropy plus a weighted numeric loss, over supervised positions only.

    total = CE + lambda * L,   CE a mean over supervised tokens, L a mean over numeric target tokens

Both means are taken over one *optimizer step*: all micro-batches of the accumulation window, all processes. A
micro-batch contributes its sums divided by the step's counts, so however a step is cut up, its gradient is the same.

Unusual: the objective calls `Backbone.forward`, which calls `NumericObjective.score` back for each chunk of logits. The
head's weights may be sharded over processes (FSDP), and then they are whole only inside the backbone's own `forward`;
and chunks are scored and dropped one by one, so the logits of all positions never exist together.

With `loss_weight: auto` lambda follows from the gradients of the first steps, see `balance`.

Shape legend: B rows, T positions, S supervised positions, V rows of the head, A numeric targets, K those of
them that the numeric loss acts on, N numeric tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from smmd_lightning.balance import LossWeight, MeasuredWeight, WeightBalance, gradient_squares
from smmd_lightning.loss_sums import StepCounts
from smmd_lightning.losses import NumericLoss, NumericPositions
from smmd_lightning.losses.cross_entropy import picked_scores, supervised_scores
from smmd_lightning.losses.positions import after_point
from smmd_lightning.losses.scope import FinalNumbers, Scope
from smmd_lightning.losses.whole_number import divergence
from smmd_lightning.types import IGNORE_INDEX, LossOutput
from smmd_lightning.vocabulary import NumericVocabulary

Forward = Callable[..., tuple[Tensor, ...]]
"""`Backbone.forward`: (inputs, labels, score[, watch]) -> the outputs of `score`, joined over chunks."""
Costs = Callable[[tuple[Tensor, ...]], tuple[Tensor, Tensor]]
"""What `score` has put out -> the cross-entropies (S,) and the sum of the numeric costs."""


class _Plan(NamedTuple):
    """How a micro-batch is scored: what the backbone is called with, what comes of it, and its numeric tokens."""

    labels_BT: Tensor
    score: Callable[[Tensor, Tensor], tuple[Tensor, ...]]
    costs: Costs
    numeric: int


class NumericObjective(nn.Module):
    """CE + `loss_weight` times the numeric loss, for any backbone.

    Args:
        numeric_loss: The numeric loss, bound to a vocabulary by `bind`. None: cross-entropy alone.
        loss_weight: Lambda, the weight of the numeric loss, at least 0; "auto": by the gradients of the first steps.
        balance: How "auto" finds it.
        scope: Whether the numeric loss acts on the last number of each answer ("answer") or on all numbers ("all").

    Raises:
        ValueError: The weight is no such number, or "auto" without a numeric loss; the scope is another one.
    """

    index_V: Tensor | None
    ids_N: Tensor | None

    def __init__(
        self,
        numeric_loss: NumericLoss | None = None,
        loss_weight: LossWeight = 1.0,
        balance: WeightBalance = WeightBalance(),  # noqa: B008 (frozen)
        scope: Scope = "all",
    ) -> None:
        super().__init__()
        if loss_weight == "auto":
            if numeric_loss is None:
                raise ValueError("loss_weight: auto needs a numeric loss to weigh. Set numeric_loss, or a number.")
        elif isinstance(loss_weight, str) or not 0 <= loss_weight < math.inf:
            raise ValueError(f"loss_weight must be a finite number of at least 0, or auto, got {loss_weight}.")
        if scope not in ("answer", "all"):
            raise ValueError(f"scope must be answer or all, got {scope!r}.")
        self.scope = scope
        self.final_numbers: FinalNumbers | None = None
        self.numeric_loss = numeric_loss
        self.loss_weight = loss_weight
        self.measured = MeasuredWeight(balance) if loss_weight == "auto" else None
        self.register_buffer("index_V", None, persistent=False)
        self.register_buffer("ids_N", None, persistent=False)

    def bind(self, vocabulary: NumericVocabulary | None, head_rows: int, head_VD: Tensor | None = None) -> None:
        """Makes the tables for a vocabulary and a head of `head_rows` rows.

        Args:
            vocabulary: The numeric tokens. None (allowed without a numeric loss only): none is numeric.
            head_rows: Rows of the model's output head.
            head_VD: Its weights, for losses that read them. None: not at hand.

        Raises:
            ValueError: A numeric token lies outside the head, there is a numeric loss but no vocabulary, or the loss
                reads the head and its weights are missing or spread over processes.
        """
        if vocabulary is None:
            if self.numeric_loss is not None:
                raise ValueError(f"{type(self.numeric_loss).__name__} needs a numeric vocabulary.")
            return
        self.index_V = vocabulary.index_table(head_rows)
        self.ids_N = vocabulary.token_ids
        self.final_numbers = FinalNumbers(vocabulary) if self.scope == "answer" else None
        if self.numeric_loss is not None:
            self.numeric_loss.bind(vocabulary)
        if self._head_reader is not None:
            if head_VD is None:
                raise ValueError(f"{type(self.numeric_loss).__name__} needs the head's weights: give bind head_VD.")
            self._head_reader.bind_head(head_VD)

    @property
    def weight(self) -> float:
        """Lambda as it is now."""
        return float(self.loss_weight) if self.measured is None else self.measured.value

    @property
    def measuring(self) -> bool:
        """Whether lambda is still being measured."""
        return self.measured is not None and self.measured.measuring

    def count(self, targets: Tensor) -> Tensor:
        """Counts the supervised and the numeric targets that an optimizer step divides by.

        Args:
            targets: (T,) or (B, T) int64 target ids; `IGNORE_INDEX` where nothing is supervised, as between answers.

        Returns:
            (2,) float64 on the targets' device.
        """
        inside = self._inside(targets, self._index(targets))
        return torch.stack([(targets != IGNORE_INDEX).sum(), inside.sum()]).double()

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
        whole = self.numeric_loss is not None and self.numeric_loss.whole_answers
        plan = self._whole_answers(self.numeric_loss, labels_BT) if whole else self._tokens(labels_BT)
        squares: list[Tensor] = []

        def watch(hidden_SD: Tensor, outputs: tuple[Tensor, ...]) -> None:
            ce_S, numeric_sum = plan.costs(outputs)
            squares.append(gradient_squares(hidden_SD, ce_S.sum(), numeric_sum))

        watched = {"watch": watch} if self.measuring and torch.is_grad_enabled() else {}
        ce_S, numeric_sum = plan.costs(backbone(inputs, plan.labels_BT, plan.score, **watched))
        supervised, numeric, ce_sum = ce_S.numel(), plan.numeric, ce_S.sum()
        per = counts or StepCounts(supervised, numeric)
        loss = ce_sum / max(per.supervised, 1e-9) if supervised else ce_sum
        weight = share * self.weight / max(per.numeric, 1e-9) if numeric else 0.0
        loss = loss + weight * numeric_sum
        metrics = {
            "ce_sum": ce_sum.detach(),
            "numeric_sum": numeric_sum.detach(),
            "ce": ce_sum.detach() / max(supervised, 1),
            "numeric": numeric_sum.detach() / max(numeric, 1),
        }
        return LossOutput(loss, metrics, supervised, numeric, squares[0] if squares else None)

    def _tokens(self, labels_BT: Tensor) -> _Plan:
        """Plans for a loss that costs numeric tokens."""
        targets_BT = labels_BT[:, 1:]
        index_BT = self._index(targets_BT)
        inside_BT = self._inside(targets_BT, index_BT)
        row_K, column_K = torch.nonzero(inside_BT, as_tuple=True)
        inside_A = inside_BT[index_BT >= 0]  # of all numeric targets, those that count

        def costs(outputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            ce_S, numeric_logits_AN, log_normalizer_A, *head_costs = outputs
            if head_costs:
                return ce_S, head_costs[0][inside_A].sum()
            if self.numeric_loss is None:
                # Touched with weight zero, so that the graph has the same shape with and without a numeric loss.
                return ce_S, numeric_logits_AN.sum() * 0.0
            point_id = None if self.numeric_loss.vocabulary is None else self.numeric_loss.vocabulary.point_id
            follows_K = after_point(targets_BT, row_K, column_K, point_id)
            positions = NumericPositions(row_K, column_K, log_normalizer_A[inside_A], follows_K)
            return ce_S, self.numeric_loss(numeric_logits_AN[inside_A], index_BT[row_K, column_K], positions).sum()

        return _Plan(labels_BT, self._score, costs, row_K.numel())

    def _whole_answers(self, loss: Any, labels_BT: Tensor) -> _Plan:
        """Plans for a loss with soft targets for whole answers."""
        inside_BT = self._inside(labels_BT, self._index(labels_BT))
        targets = loss.soft_targets(labels_BT, inside_BT if self.scope == "answer" else None)
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

        def costs(outputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            ce_S, log_probability_P = outputs
            return ce_S, divergence(log_probability_P, targets.mass_P)

        return _Plan(places_BT, score, costs, int(inside_BT[:, 1:].sum()))

    @property
    def _head_reader(self) -> Any:
        return self.numeric_loss if self.numeric_loss is not None and self.numeric_loss.reads_head else None

    def _score(self, logits_SV: Tensor, targets_S: Tensor) -> tuple[Tensor, ...]:
        """Scores a chunk of positions.

        Returns:
            The cross-entropies (S,); of the chunk's numeric targets the numeric logits (K, N), and the logarithm of
            the softmax's denominator over the whole head (K,), which some losses need; of a loss that reads the head
            also its costs (K,).
        """
        if self.ids_N is None:
            rows_K = ids_N = targets_S.new_empty(0)
        else:
            rows_K, ids_N = torch.nonzero(self._index(targets_S) >= 0).squeeze(1), self.ids_N
        scores = supervised_scores(logits_SV, targets_S, rows_K, ids_N)
        if self._head_reader is None:
            return scores
        return (*scores, self._head_reader.over_head(logits_SV[rows_K], self._index(targets_S)[rows_K]))

    def _index(self, targets: Tensor) -> Tensor:
        """Returns each target's place in the numeric vocabulary, -1 where it is no number or not supervised."""
        if self.index_V is None:
            return torch.full_like(targets, -1)
        index = self.index_V[targets.clamp(min=0)]
        return torch.where(targets == IGNORE_INDEX, -1, index)

    def _inside(self, targets: Tensor, index: Tensor) -> Tensor:
        """Returns which targets are numbers that the numeric loss acts on."""
        return index >= 0 if self.final_numbers is None else self.final_numbers(targets, index)
