"""Answers that are numbers as torchmetrics classes; the rules are in `metrics.functional.numeric`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule, Decimals
from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.facts import RELATIVE_CURVE, MetricFacts, ToleranceCurve
from smmd_lightning.metrics.functional.numeric import COLUMNS, TOLERANCES, judge_number, summarise_numbers
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample

CLOSE = 0.05 * (1 + 1e-6)
"""The tolerant rule's limit; distances are float32, in which 5 % exactly may come out a hair above 0.05."""


class NumberMetrics(AnswerMetrics):
    """Exact match, absolute and relative error, and accuracy at several tolerances, of answers that are numbers.

    `compute` gives `exact_match`, `parse_failures`, mean and median of absolute and relative errors, penalised and
    capped means, and `within_5_percent` and the like; `functional.numeric.summarise_numbers` says what each is of. An
    answer without a number is wrong. Where `meta["numeric"]` is false, or the right answer is no number as a whole, the
    texts are compared and no error is counted.

    Args:
        tolerances: Relative tolerances of the accuracy curve, 0.05 for 5 % of the truth.
        rule: Which of several numbers in an answer counts, see `smmd_lightning.answers`.
        decimals: Which sign is the decimal sign: "auto", "point" or "comma"; an example's
            `meta["decimals"]` goes first.
        words: Whether numbers in English words count where there are no digits; so too `meta["words"]`.
        roman: Whether Roman numerals count where there are no digits; so too `meta["roman"]`.
        kwargs: Settings of `torchmetrics.Metric`.
    """

    task: ClassVar[str] = "number"
    title: ClassVar[str] = "Numbers"
    tiles: ClassVar[tuple[str, ...]] = (
        "within_5_percent", "median_relative_error", "capped_mean_relative_error", "parse_failures",
    )  # fmt: skip
    unit: ClassVar[str] = "absolute"
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "mean_absolute_error": MetricFacts("min", ""),
        "median_absolute_error": MetricFacts("min", ""),
        "penalised_mean_absolute_error": MetricFacts("min", "", "Mean absolute error, no answer counts as 0"),
        "capped_mean_absolute_error": MetricFacts("min", "", "Mean absolute error, at most the truth"),
        "mean_relative_error": MetricFacts("min", "relative"),
        "capped_mean_relative_error": MetricFacts("min", "relative", "Mean relative error, at most 100 %"),
        "median_relative_error": MetricFacts("min", "relative"),
        "within_*_percent": MetricFacts("max", "share", "Within {} %"),
    }
    tolerant_rule: ClassVar[str] = "within 5 %"
    curve: ClassVar[ToleranceCurve] = RELATIVE_CURVE

    def __init__(
        self,
        tolerances: Sequence[float] = TOLERANCES,
        rule: AnswerRule = "marked",
        decimals: Decimals = "auto",
        words: bool = False,
        roman: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if any(not 0 <= tolerance < float("inf") for tolerance in tolerances):
            raise ValueError(f"tolerances must be 0 or more, 0.05 for 5 %, got {list(tolerances)}.")
        self.tolerances = tuple(tolerances)
        self.rule = rule
        self.decimals = decimals
        self.words = words
        self.roman = roman

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(COLUMNS) + len(self.tolerances)

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer."""
        meta = example.meta
        return judge_number(
            prediction,
            example.answer,
            numeric=meta.get("numeric"),
            rule=self.rule,
            tolerances=self.tolerances,
            decimals=meta.get("decimals", self.decimals),
            words=meta.get("words", self.words),
            roman=meta.get("roman", self.roman),
        )

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged answers."""
        return summarise_numbers(table_NC, self.tolerances)

    def distances(self, table_NC: Tensor) -> Tensor:
        """Returns errors relative to the truth."""
        return self._column(table_NC, "relative_error")

    def close_enough(self, table_NC: Tensor) -> Tensor:
        """Returns which answers are within 5 % of the truth; without a distance, which are exactly right."""
        distance_N = self.distances(table_NC)
        exact_N = self._column(table_NC, "exact_match") > 0
        return torch.where(distance_N.isnan(), exact_N, distance_N <= CLOSE)

    def counted(self, name: str, table_NC: Tensor) -> int:
        """Returns how many truths are numbers for `within_5_percent` and the like, else all."""
        numeric = name.startswith("within_") and name.endswith("_percent")
        return int((~self._column(table_NC, "absolute_error").isnan()).sum()) if numeric else len(table_NC)

    def _column(self, table_NC: Tensor, name: str) -> Tensor:
        before = self.width - len(COLUMNS) - len(self.tolerances)
        return table_NC[:, before + COLUMNS.index(name)]


class MathMetrics(NumberMetrics):
    """The metrics of `NumberMetrics`, for text math."""

    task: ClassVar[str] = "math"
    title: ClassVar[str] = "Text math"
