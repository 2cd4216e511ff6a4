"""What an answer says: value, unit, and the interval in which the model believes the value to lie.

One real example::

    >>> value_and_unit("The pressure is 4.08 bar", times=False)
    ('4.08', 'bar')
    >>> value_and_unit("five past three", times=True)
    ('03:05', '')
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smmd_lightning.answers import answer_quantity, parse_time, plain_text
from smmd_lightning.reading.belief import central_interval

HALF_DAY = 720 * 60
"""Seconds of one turn of the hour hand."""

_UNIT = re.compile(r"\s?([^\W\d_]{1,12}(?:/[^\W\d_]{1,6})?[²³]?|°\s?[CF]?|[%″\"])", re.UNICODE)


def value_and_unit(text: str, times: bool) -> tuple[str | None, str]:
    """Returns the value as text, and the unit behind it (empty for none); None where nothing can be read.

    Args:
        text: What the model wrote.
        times: Whether it is a time of day.
    """
    if times:
        time = parse_time(text)
        return (None if time is None else str(time)), ""
    found = answer_quantity(text)
    if found is None:
        return None, ""
    if found.percent:
        return f"{found.value:f}", "%"
    plain = plain_text(text)
    place = plain.rfind(found.written)
    unit = _UNIT.match(plain, place + len(found.written)) if place >= 0 else None
    return f"{found.value:f}", unit[1] if unit else ""


def value_interval(text: str, answers: Sequence[tuple[str, float]], times: bool) -> tuple[str, str] | None:
    """Returns the range that holds 90 % of the model's probability, as texts; None where nothing can be read.

    Times are taken on the dial, the shorter way round from the answer: 12:58 to 01:02.

    Args:
        text: What the model wrote.
        answers: Whole answers with their probabilities.
        times: Whether they are times of day.
    """
    if not times:
        ends = central_interval(answers, _number)
        return None if ends is None else (_text(ends[0]), _text(ends[1]))
    middle = parse_time(text)
    if middle is None:
        return None

    def seconds_off(other: str) -> float | None:
        time = parse_time(other)
        return None if time is None else (time.seconds - middle.seconds + HALF_DAY // 2) % HALF_DAY - HALF_DAY // 2

    ends = central_interval(answers, seconds_off)
    return None if ends is None else (_clock(middle.seconds + ends[0]), _clock(middle.seconds + ends[1]))


def _number(text: str) -> float | None:
    found = answer_quantity(text)
    return None if found is None else float(found.value)


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _clock(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) % HALF_DAY // 60, 60)
    return f"{hours or 12:02d}:{minutes:02d}"
