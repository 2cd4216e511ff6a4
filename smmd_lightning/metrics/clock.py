"""Clock readings as a torchmetrics class; the rules are in `metrics.functional.clock`."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from smmd_lightning.answers import AnswerRule
from smmd_lightning.metrics.base import AnswerMetrics
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

    error_unit: ClassVar[str] = "minutes"
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
