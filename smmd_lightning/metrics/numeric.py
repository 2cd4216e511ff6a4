"""Answers of text math as a torchmetrics class; the rules are in `metrics.functional.numeric`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from smmd_lightning.answers import AnswerRule
from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.functional.numeric import COLUMNS, TOLERANCES, judge_number, summarise_numbers
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample


class NumberMetrics(AnswerMetrics):
    """Exact match, absolute and relative error, and accuracy at several tolerances, of answers that are numbers.

    `compute` gives `exact_match`, `parse_failures`, `mean_absolute_error`, `median_absolute_error`,
    `mean_relative_error`, `median_relative_error`, and `within_5_percent` and the like. An answer without a number is
    wrong; means of errors leave it out, medians count it as infinitely far. Where `meta["numeric"]` is false, or the
    right answer is no number as a whole, the texts are compared and no error is counted.

    Args:
        tolerances: Relative tolerances of the accuracy curve, 0.05 for 5 % of the truth.
        rule: Which of several numbers in an answer counts, see `smmd_lightning.answers`.
        kwargs: Settings of `torchmetrics.Metric`.
    """

    error_unit: ClassVar[str] = "absolute"

    def __init__(self, tolerances: Sequence[float] = TOLERANCES, rule: AnswerRule = "marked", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if any(not 0 <= tolerance < float("inf") for tolerance in tolerances):
            raise ValueError(f"tolerances must be 0 or more, 0.05 for 5 %, got {list(tolerances)}.")
        self.tolerances = tuple(tolerances)
        self.rule = rule

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(COLUMNS) + len(self.tolerances)

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer."""
        numeric = example.meta.get("numeric")
        return judge_number(prediction, example.answer, numeric=numeric, rule=self.rule, tolerances=self.tolerances)

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged answers."""
        return summarise_numbers(table_NC, self.tolerances)
