"""Times of day on a 12-hour dial: how answers write them, and which split asks for which.

One real example: `clock_answer(15, 5, 0, "HH:MM")` is `"03:05"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from datamodules.sources.splits import check_fractions

AnswerFormat = Literal["HH:MM", "HH:MM:SS"]
MINUTES = 12 * 60


def clock_answer(hour: int, minute: int, second: int | None, answer_format: AnswerFormat) -> str:
    """Writes a time as the model should.

    Args:
        hour: 0 to 23; afternoon hours become those of the dial.
        minute: 0 to 59.
        second: 0 to 59; not used for `HH:MM`.
        answer_format: `HH:MM` or `HH:MM:SS`.

    Returns:
        The hour as 01 to 12, all parts with two digits.

    >>> clock_answer(15, 5, 9, "HH:MM"), clock_answer(0, 0, 7, "HH:MM:SS")
    ('03:05', '12:00:07')
    """
    text = f"{hour % 12 or 12:02d}:{minute:02d}"
    return f"{text}:{second or 0:02d}" if answer_format == "HH:MM:SS" else text


def split_times(seed: int, fractions: Sequence[float] = (0.8, 0.1, 0.1), minute_step: int = 1) -> dict[str, list[int]]:
    """Deals the times of a 12-hour dial out to the splits.

    Args:
        seed: Gives another partition.
        fractions: Shares of train, val and test.
        minute_step: Only minutes that are multiples of it occur.

    Returns:
        For each split its times in minutes after twelve (0 to 719), in random order; disjoint, together all.

    Raises:
        ValueError: The step does not divide 60, or the fractions are no shares.

    >>> {split: len(times) for split, times in split_times(0).items()}
    {'train': 576, 'val': 72, 'test': 72}
    """
    if minute_step < 1 or 60 % minute_step:
        raise ValueError(f"minute_step must divide 60, got {minute_step}")
    train, val, _ = check_fractions(fractions)
    times = np.arange(0, MINUTES, minute_step)
    order = np.random.default_rng([seed, len(times)]).permutation(times).tolist()
    first, second = round(train * len(times)), round((train + val) * len(times))
    return {"train": order[:first], "val": order[first:second], "test": order[second:]}


def default_prompts(answer_format: AnswerFormat) -> tuple[str, ...]:
    """Returns the question asked where none is set."""
    if answer_format not in ("HH:MM", "HH:MM:SS"):
        raise ValueError(f"answer_format must be 'HH:MM' or 'HH:MM:SS', got {answer_format!r}")
    return (f"What time does this clock show? Answer as {answer_format}.",)
