"""Readings of instruments as a torchmetrics class; the rules are in `metrics.functional.instrument`."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from smmd_lightning.answers import AnswerRule
from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.functional.instrument import (
    COLUMNS,
    InstrumentTruth,
    judge_instrument,
    summarise_instruments,
)
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample


class InstrumentMetrics(AnswerMetrics):
    """Readings of gauges, meters and scales: error in parts of the scale, inside the tick or not, unit.

    `compute` gives `exact_match`, `within_tick`, `mean_scale_error` and `median_scale_error` (percent of the scale),
    `within_N_percent_of_scale`, `parse_failures`; where units were asked also `unit_accuracy` and
    `within_tick_and_unit`. An answer without a number counts as wrong and as a whole scale off.

    Args:
        rule: Which of several numbers in an answer counts, see `smmd_lightning.answers`.
        kwargs: Settings of `torchmetrics.Metric`.
    """

    error_unit: ClassVar[str] = "% of the scale"
    by_kind: ClassVar[tuple[str, ...]] = ("within_tick", "median_scale_error")

    def __init__(self, rule: AnswerRule = "marked", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rule = rule

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(COLUMNS)

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one reading.

        Raises:
            ValueError: The example's facts lack `value`, `tick` or `scale`.
        """
        return judge_instrument(prediction, InstrumentTruth.of(example.meta), self.rule)

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged readings."""
        return summarise_instruments(table_NC)
