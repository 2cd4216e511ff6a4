"""Readings of instruments as a torchmetrics class; the rules are in `metrics.functional.instrument`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule
from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.facts import MetricFacts, ToleranceCurve
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

    task: ClassVar[str] = "instrument"
    title: ClassVar[str] = "Instruments"
    headline: ClassVar[str] = "within_tick"
    tiles: ClassVar[tuple[str, ...]] = (
        "median_scale_error", "within_2_percent_of_scale", "exact_match", "unit_accuracy", "parse_failures",
    )  # fmt: skip
    unit: ClassVar[str] = "% of the scale"
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "within_tick": MetricFacts("max", "share", "Within half a tick"),
        "mean_scale_error": MetricFacts("min", "% of the scale", "Mean error"),
        "median_scale_error": MetricFacts("min", "% of the scale", "Median error"),
        "within_*_percent_of_scale": MetricFacts("max", "share", "Within {} % of the scale"),
        "unit_accuracy": MetricFacts("max", "share", "Right unit"),
        "within_tick_and_unit": MetricFacts("max", "share", "Within half a tick, right unit"),
    }
    tolerant_rule: ClassVar[str] = "within half a tick"
    curve: ClassVar[ToleranceCurve] = ToleranceCurve(
        "Accuracy by tolerance",
        "% of the scale that are tolerated",
        (0, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50),
        (0, 0.5, 1, 2, 5, 10, 50),
    )
    plots: ClassVar[str] = "smmd_lightning.report.instrument_plots:plots"
    overlay_svg: ClassVar[str] = "smmd_lightning.report.instrument_plots:overlay"
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

    def distances(self, table_NC: Tensor) -> Tensor:
        """Returns percent of the scale, infinite where no number was read."""
        failed_N = table_NC[:, COLUMNS.index("parse_failures")] > 0
        return torch.where(failed_N, torch.inf, 100 * table_NC[:, COLUMNS.index("scale_error")])

    def close_enough(self, table_NC: Tensor) -> Tensor:
        """Returns which readings are at most half a tick off."""
        return table_NC[:, COLUMNS.index("within_tick")] > 0

    def counted(self, name: str, table_NC: Tensor) -> int:
        """Returns how many answers had to name a unit for the metrics about units, else all."""
        asked_N = ~table_NC[:, COLUMNS.index("unit_accuracy")].isnan()
        return int(asked_N.sum()) if name in ("unit_accuracy", "within_tick_and_unit") else len(table_NC)

    def period_of(self, example: NumericExample) -> float | None:
        """Returns the length of a scale that closes on itself (a compass)."""
        period = InstrumentTruth.of(example.meta).period
        return None if period is None else float(period)

    def per_unit(self, example: NumericExample) -> float:
        """Returns percent of the scale that one unit of value is."""
        return 100 / float(InstrumentTruth.of(example.meta).span)

    def largest_error(self, example: NumericExample) -> float:
        """Returns the whole scale, in percent."""
        return 100.0
