"""Clock readings as a torchmetrics class; the rules are in `metrics.functional.clock`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule, parse_time
from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.facts import MetricFacts, ToleranceCurve
from smmd_lightning.metrics.functional.clock import COLUMNS, judge_reading, summarise_readings
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample


class ClockMetrics(AnswerMetrics):
    """Exact match, circular error, hour and minute accuracy of times read from clocks.

    `compute` gives `exact_match` (to the second where the truth has seconds), `mean_error_minutes`,
    `median_error_minutes`, `within_1_minute`, `within_5_minutes`, `hour_accuracy`, `minute_accuracy`, `parse_failures`.
    An answer that is no time counts as wrong, and with the largest error there is (360 minutes on a 12-hour dial).

    Args:
        dial_hours: Hours of one turn of the hour hand: 12, or 24 where morning and afternoon differ.
        rule: Which of several times in an answer counts, see `smmd_lightning.answers`.
        kwargs: Settings of `torchmetrics.Metric`.
    """

    task: ClassVar[str] = "clock"
    title: ClassVar[str] = "Clocks"
    reads: ClassVar[Literal["number", "time"]] = "time"
    tiles: ClassVar[tuple[str, ...]] = (
        "within_5_minutes", "median_error_minutes", "hour_accuracy", "minute_accuracy", "parse_failures",
    )  # fmt: skip
    unit: ClassVar[str] = "minutes"
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "mean_error_minutes": MetricFacts("min", "minutes", "Mean error"),
        "median_error_minutes": MetricFacts("min", "minutes", "Median error"),
        "within_1_minute": MetricFacts(),
        "within_*_minutes": MetricFacts(),
        "hour_accuracy": MetricFacts(),
        "minute_accuracy": MetricFacts(),
    }
    tolerant_rule: ClassVar[str] = "within 5 minutes"
    curve: ClassVar[ToleranceCurve] = ToleranceCurve(
        "Accuracy by tolerance",
        "minutes that are tolerated",
        (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60),
        (0, 1, 2, 5, 10, 30, 60),
    )
    places: ClassVar[tuple[str, ...]] = ("minutes, ones", "minutes, tens", "hours, ones", "hours, tens")
    plots: ClassVar[str] = "smmd_lightning.report.clock_plots:plots"
    overlay: ClassVar[str] = "smmd_lightning.report.ghost:overlay"
    overlay_svg: ClassVar[str] = "smmd_lightning.report.clock_plots:overlay"
    by_kind: ClassVar[tuple[str, ...]] = ("exact_match", "median_error_minutes", "within_5_minutes")

    def __init__(self, dial_hours: int = 12, rule: AnswerRule = "marked", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if dial_hours not in (12, 24):
            raise ValueError(f"dial_hours must be 12 or 24, got {dial_hours}.")
        self.dial_hours = dial_hours
        self.rule = rule

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(COLUMNS)

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one reading."""
        return judge_reading(prediction, example.answer, dial_hours=self.dial_hours, rule=self.rule)

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged readings."""
        return summarise_readings(table_NC)

    def distances(self, table_NC: Tensor) -> Tensor:
        """Returns minutes on the dial, infinite where no time was read."""
        failed_N = table_NC[:, COLUMNS.index("parse_failures")] > 0
        return torch.where(failed_N, torch.inf, table_NC[:, COLUMNS.index("error_minutes")])

    def close_enough(self, table_NC: Tensor) -> Tensor:
        """Returns which readings are at most 5 minutes off."""
        return self.distances(table_NC) <= 5

    def period_of(self, example: NumericExample) -> float:
        """Returns the minutes of one turn of the hour hand."""
        return 60.0 * self.dial_hours

    def value_of(self, text: str) -> float | None:
        """Returns minutes since the hour hand stood at the top."""
        time = parse_time(text)
        return None if time is None else time.seconds / 60 % (60 * self.dial_hours)

    def text_of(self, value: float, like: str) -> str:
        """Writes minutes as a time, with seconds where the other has them."""
        seconds = like.count(":") == 2
        total = round(value * 60) if seconds else 60 * round(value)
        hour = total // 3600 % self.dial_hours
        shown = hour or 12 if self.dial_hours == 12 else hour
        return f"{shown:02d}:{total // 60 % 60:02d}" + (f":{total % 60:02d}" if seconds else "")

    def largest_error(self, example: NumericExample) -> float:
        """Returns half a turn, in minutes."""
        return 30.0 * self.dial_hours

    def digits(self, text: str) -> str | None:
        """Returns hour (of twelve) and minute as four digits."""
        time = parse_time(text)
        return None if time is None else f"{time.hour % 12 or 12:02d}{time.minute:02d}"
