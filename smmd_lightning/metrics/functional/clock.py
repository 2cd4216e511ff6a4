"""Clock readings: how far the hands are apart.

Shape legend: N answers, C columns of a row.

Unusual: on a 12-hour dial 15:05 and 3:05 are one time, and 12:59 is one minute from 1:00. An answer that cannot be read
counts as wrong in every share and as half a dial (360 minutes, the largest error there is) in mean and median: leaving
it out would reward a model that says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule, TimeOfDay, parse_time
from smmd_lightning.metrics.functional.summaries import mean, median
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("exact_match", "error_minutes", "hour_accuracy", "minute_accuracy", "parse_failures")


def circular_error_minutes(prediction: TimeOfDay, target: TimeOfDay, dial_hours: int = 12) -> float:
    """Returns the shorter way round the dial from one time to the other, in minutes.

    Args:
        prediction: The time read.
        target: The right time. An untold second counts as 0.
        dial_hours: Hours of one turn of the hour hand, 12 or 24.

    >>> circular_error_minutes(TimeOfDay(12, 59), TimeOfDay(1, 0))
    1.0
    """
    turn = 3600 * dial_hours
    apart = (prediction.seconds - target.seconds) % turn
    return min(apart, turn - apart) / 60


def judge_reading(prediction: str, target: str, *, dial_hours: int = 12, rule: AnswerRule = "marked") -> Judgement:
    """Judges one answer.

    Raises:
        ValueError: The target is no time of day, or `dial_hours` is neither 12 nor 24.
    """
    if dial_hours not in (12, 24):
        raise ValueError(f"dial_hours must be 12 or 24, got {dial_hours}.")
    truth = parse_time(target, rule)
    if truth is None:
        raise ValueError(f"The right answer of a clock must be a time of day such as 03:05, got {target!r}.")
    read = parse_time(prediction, rule)
    if read is None:
        return Judgement(Score(None, str(truth), None, False), (0.0, 30.0 * dial_hours, 0.0, 0.0, 1.0))
    error = circular_error_minutes(read, truth, dial_hours)
    hour = read.hour % dial_hours == truth.hour % dial_hours
    minute = read.minute == truth.minute
    exact = hour and minute and (truth.second is None or (read.second or 0) == truth.second)
    return Judgement(Score(str(read), str(truth), error, exact), (float(exact), error, float(hour), float(minute), 0.0))


def summarise_readings(table_NC: Tensor, within: Sequence[int] = (1, 5)) -> dict[str, Tensor]:
    """Returns the metrics of judged answers.

    Args:
        table_NC: (N, C) float, one row an answer with the columns `COLUMNS`.
        within: Minutes; for each the share of answers that are at most so far off.
    """
    exact, error, hour, minute, failed = table_NC.unbind(1)
    return {
        "exact_match": mean(exact),
        "mean_error_minutes": mean(error),
        "median_error_minutes": median(error),
        **{f"within_{n}_minute{'s' * (n != 1)}": mean(((error <= n) & (failed == 0)).float()) for n in within},
        "hour_accuracy": mean(hour),
        "minute_accuracy": mean(minute),
        "parse_failures": mean(failed),
    }


def clock_readings(
    predictions: Sequence[str], targets: Sequence[str], *, dial_hours: int = 12, rule: AnswerRule = "marked"
) -> dict[str, Tensor]:
    """Returns the metrics of N answers; the functional twin of `ClockMetrics`.

    >>> values = clock_readings(["1:00", "five past three"], ["12:59", "15:05"])
    >>> values["exact_match"].item(), values["mean_error_minutes"].item(), values["within_1_minute"].item()
    (0.5, 0.5, 1.0)
    """
    pairs = zip(predictions, targets, strict=True)
    rows = [judge_reading(*pair, dial_hours=dial_hours, rule=rule).row for pair in pairs]
    return summarise_readings(torch.tensor(rows, dtype=torch.float32).reshape(-1, len(COLUMNS)))
