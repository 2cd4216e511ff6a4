"""TickTockVQA's rule (arXiv 2603.08011): hour and minute met, and whether the hands were taken for each other.

Unusual: no evaluation script is published. Hour and minute are compared on the dial, exactly. A reading is "swapped"
when it is what the same picture shows with the hands exchanged: the hour to which the minute hand points, and the
minute to which the hour hand points, whole or rounded to the nearest.

One real example::

    >>> sorted(swapped_times(3, 30)), judge_ticktock("6:17", "03:30").row
    ([(6, 17), (6, 18)], (0.0, 0.0, 0.0, 1.0, 1.0, 0.0))
"""

from __future__ import annotations

from smmd_lightning.answers import AnswerRule, parse_time
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("accuracy", "hour_accuracy", "minute_accuracy", "swapped_hands", "accuracy_or_swapped", "parse_failures")


def swapped_times(hour: int, minute: int) -> set[tuple[int, int]]:
    """Returns what a clock face shows with its hands exchanged: hour (0-11) and minute, rounded down or to the nearest.

    The minute hand at `minute` points to the hour minute / 5; the hour hand points to the minute 5 hour + minute / 12.
    """
    twelfths = 60 * (hour % 12) + minute  # of a minute's mark, from twelve to the hour hand
    return {(minute // 5 % 12, twelfths // 12 % 60), (minute // 5 % 12, (twelfths + 6) // 12 % 60)}


def judge_ticktock(prediction: str, target: str, rule: AnswerRule = "marked") -> Judgement:
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
        return Judgement(Score(None, shown, None, False), (0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    hour, minute = read.hour % 12 == truth.hour % 12, read.minute == truth.minute
    both = hour and minute
    swapped = not both and (read.hour % 12, read.minute) in swapped_times(truth.hour, truth.minute)
    row = (float(both), float(hour), float(minute), float(swapped), float(both or swapped), 0.0)
    return Judgement(Score(str(read), shown, None, both), row)
