r"""MeasureBench's rule: the value inside an interval, and the unit named.

Unusual: bit for bit as published (arXiv 2510.26865 and its evaluation script), oddities included. Of a text the part
after its last "Answer" counts, else its first `\boxed{}`, else all. The last number counts, of times of day the first.
A unit is right when its letters stand anywhere in that part, in any case. The sign before a decimal or whole number may
also be a backslash or the letter u, and such a number is then none.

One real example::

    >>> judge_measurement("The needle is past 4.\nAnswer: 4.3 bar", [[4.2, 4.4]], [["bar"]]).row
    (1.0, 1.0, 1.0, 0.0)
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("accuracy", "number_accuracy", "unit_accuracy", "number_error_rate")

Interval = Sequence[float] | Sequence[str]
"""Least and greatest value, as numbers or as times of day."""

_ANNOUNCED = ("Answer:", "Answer", "答案：", "答案:", "答案")
_BOXED = re.compile(r"\\boxed\{([^}]+)\}")
_DASHES = str.maketrans({"′": "'", "‐": "-", "−": "-", "–": "-", "⋅": "·"})
_SIGNED_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*([+-]?\d+)")
_NUMBER = re.compile(rf"(?:{_SIGNED_FRACTION.pattern})|([+\-\\u]?(?:\d*\.\d+|\d+\.\d*))|([+\-\\u]?\d+)")
_TIME = re.compile(r"\b(\d{1,2}):(\d{2})(?::(\d{2}))?\b")
_SMALL = 1e-6


def answer_part(text: str) -> str:
    """Returns the part of an answer that the rule looks at."""
    for mark in _ANNOUNCED:
        if mark in text:
            return text.rpartition(mark)[2].strip().translate(_DASHES)
    boxed = _BOXED.search(text)
    return (boxed[1].strip() if boxed else text).translate(_DASHES)


def numbers_in(text: str) -> list[float]:
    """Returns the numbers that the rule sees in a text, fractions divided.

    >>> numbers_in("1/2 of -3.5, u5 and 7.")
    [0.5, -3.5, 7.0]
    """
    found = []
    for above, below, decimal, whole in _NUMBER.findall(text):
        if above:
            found += _divided(above, below)
        elif (decimal or whole)[0] not in "u\\":
            found.append(float(decimal or whole))
    return found


def judge_measurement(prediction: str, intervals: Sequence[Interval], units: Sequence[Sequence[str]]) -> Judgement:
    """Judges one answer.

    Args:
        prediction: What the model wrote.
        intervals: One interval, or several of which any may be met (3:05 and 15:05).
        units: For each interval the ways to write its unit; an empty list where none is asked. Empty: none anywhere.

    Returns:
        The score, and a row with the columns `COLUMNS`: right in all, value right, unit right (NaN where none is
        asked), and how far outside the interval (NaN where nothing was read).

    Raises:
        ValueError: There is no interval.
    """
    if not intervals:
        raise ValueError("a MeasureBench question needs an interval, got none")
    said = answer_part(prediction)
    best: tuple[float, float, float, float] | None = None
    for interval, names in zip(intervals, units or [[] for _ in intervals], strict=False):
        row = _against(said, interval, names)
        if row[0] == 1:
            best = row
            break
        if best is None or _better(row, best):
            best = row
    assert best is not None
    truth = " or ".join(f"{low} to {high}" for low, high in intervals)
    names = next((name for group in units for name in group[:1]), "")
    error = None if math.isnan(best[3]) else best[3]
    return Judgement(Score(said or None, f"{truth} {names}".strip(), error, best[0] == 1), best)


def _against(said: str, interval: Interval, units: Sequence[str]) -> tuple[float, float, float, float]:
    unit = float(any(_folded(name) in _folded(said) for name in units)) if units else math.nan
    if isinstance(interval[0], str):
        low, high = (float(_seconds(str(edge).split(":"))) for edge in interval)
        time = _TIME.search(said)
        value = None if time is None else float(_seconds([part or "0" for part in time.groups()]))
    else:
        low, high = (float(edge) for edge in interval)
        found = numbers_in(said)
        value = found[-1] if found and math.isfinite(found[-1]) else None
    if value is None:
        return 0.0, 0.0, unit, math.nan
    if low <= value <= high:
        return float(not units or unit == 1), 1.0, unit, 0.0
    rate = min(abs((value - edge) / (edge + _SMALL)) if edge + _SMALL else math.inf for edge in (low, high))
    return 0.0, 0.0, unit, rate


def _better(row: tuple[float, ...], best: tuple[float, ...]) -> bool:
    def hits(found: tuple[float, ...]) -> float:
        return found[1] + (1.0 if math.isnan(found[2]) else found[2])

    nearer = not math.isnan(row[3]) and (math.isnan(best[3]) or row[3] < best[3])
    return hits(row) > hits(best) or nearer


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.lower()).replace("µ", "μ")


def _seconds(parts: Sequence[str]) -> int:
    return sum(scale * int(part) for scale, part in zip((3600, 60, 1), parts, strict=False))


def _divided(above: str, below: str) -> list[float]:
    try:
        return [int(above) / int(below)]
    except (ValueError, ZeroDivisionError, OverflowError):  # thousands of digits, nothing to divide by, too large
        return []
