"""The rules of "It's About Time: Analog Clock Reading in the Wild" (arXiv 2111.09162).

Unusual: bit for bit as its evaluation script has them. The hour must be met exactly, the minute up to one (59 and 0 are
neighbours), and the whole time up to one minute on the dial (11:59 and 12:00 are neighbours).

One real example::

    >>> judge_wild_clock("12:00", "11:59").row
    (1.0, 0.0, 1.0, 0.0)
"""

from __future__ import annotations

from smmd_lightning.answers import AnswerRule, parse_time
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("accuracy", "hour_accuracy", "minute_accuracy", "parse_failures")


def judge_wild_clock(prediction: str, target: str, rule: AnswerRule = "marked") -> Judgement:
    """Judges one reading.

    Args:
        prediction: What the model wrote.
        target: The right time.
        rule: Which of several times counts, see `smmd_lightning.answers`.

    Raises:
        ValueError: The target is no time of day.
    """
    truth, read = parse_time(target, rule), parse_time(prediction, rule)
    if truth is None:
        raise ValueError(f"The right answer of a clock must be a time of day such as 03:05, got {target!r}.")
    shown = f"{truth.hour % 12 or 12}:{truth.minute:02d}"
    if read is None:
        return Judgement(Score(None, shown, None, False), (0.0, 0.0, 0.0, 1.0))
    hours, minutes = (read.hour % 12, truth.hour % 12), (read.minute, truth.minute)
    minute = abs(minutes[0] - minutes[1]) in (0, 1, 59)
    both = abs(60 * (hours[0] - hours[1]) + minutes[0] - minutes[1]) in (0, 1, 719)
    row = (float(both), float(hours[0] == hours[1]), float(minute), 0.0)
    return Judgement(Score(str(read), shown, None, both), row)
