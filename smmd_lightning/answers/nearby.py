r"""The answers near a true one, with their probabilities: the target law q of whole-number losses and of label jitter.

Unusual: everything is counted in units of the last place that the answer writes, so "0.30" has neighbours "0.29" and
"0.31", "9" has "10", and "12:59" has "01:00". A time of day is one number, its minutes (or seconds) since midnight.

One real example::

    >>> [(text, round(mass, 2)) for text, mass in AnswerLaw(widths=(0.5,)).near("9")]
    [('6', 0.0), ('7', 0.0), ('8', 0.11), ('9', 0.79), ('10', 0.11), ('11', 0.0), ('12', 0.0)]
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Shape = Literal["gaussian", "laplace"]
Unit = Literal["last_place", "value", "relative"]

REACH: dict[str, float] = {"gaussian": 6.0, "laplace": 18.0}
"""Answers further away than so many widths are left out; their mass is below 2e-8."""
MOST = 4001
"""Answers that a law holds at most; a wider law keeps every n-th answer, the true one among them."""

_IN_TEXT = re.compile(r"(?<![0-9A-Za-z.:,-])-?[0-9]+(?:\.[0-9]+|(?::[0-9]{2}){1,2})?(?![0-9]|[.:,/-][0-9])")
"""A number or a time of day inside a text; not a part of 1,005, 1.2.3 or 3/4, and not one side of 5-3."""
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?")
_TIME = re.compile(r"([0-9]{1,2}):([0-5][0-9])(?::([0-5][0-9]))?")


@dataclass(frozen=True)
class AnswerLaw:
    """A law over answers: q(x) falls off with the distance from x to the true answer.

    Attributes:
        shape: `gaussian`, exp(-d^2 / 2 w^2), or `laplace`, exp(-d / w).
        widths: One or more w. With several, the law is the average of their kernels, as SMMD's kernel is.
        unit: What w is measured in: `last_place` (0.01 for "3.75", a minute for "03:05"), `value` (1, or a minute), or
            `relative` (a share of the true value; of a time, a share of the dial).
        period: Length of the dial in units of the value, 360 for a compass: 359 and 0 are neighbours. None: a line.
        hours: Hours on the dial of times of day, 12 or 24. Hours above 12 and "00" count as of 24.
        hour_digits: 2 where times are written "09:59", 1 where "9:59".
        signed: Whether the law crosses zero. False: answers keep the sign of the true one.

    Raises:
        ValueError: A setting is outside its range.
    """

    shape: Shape = "gaussian"
    widths: tuple[float, ...] = (1.0,)
    unit: Unit = "last_place"
    period: float | None = None
    hours: int = 12
    hour_digits: int = 2
    signed: bool = False

    def __post_init__(self) -> None:
        """Checks the settings."""
        for name, value, allowed in (
            ("shape", self.shape, tuple(REACH)),
            ("unit", self.unit, ("last_place", "value", "relative")),
            ("hours", self.hours, (12, 24)),
            ("hour_digits", self.hour_digits, (1, 2)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}.")
        if not self.widths or not all(1e-6 <= width <= 1e6 for width in self.widths):
            raise ValueError(f"widths must be one or more numbers from 1e-06 to 1e+06, got {self.widths}.")
        if self.period is not None and not 1 <= self.period <= 1e9:
            raise ValueError(f"period must be a number from 1 to 1e+09, got {self.period}.")

    def near(self, text: str) -> list[tuple[str, float]]:
        """Lists the answers near a true one, in order of their offset, with masses that sum to one.

        Args:
            text: The true answer: "42", "-0.50", "007", "03:05", "23:59:30".

        Raises:
            ValueError: The text is neither a number nor a time of day.
        """
        period: int | None
        if found := _TIME.fullmatch(text):
            place, width, period, write = self._time(found)
        elif found := _NUMBER.fullmatch(text):
            place, width, period, write = self._number(found)
        else:
            raise ValueError(f"{text!r} is neither a number such as 0.50 nor a time such as 03:05.")
        widths = [width * each for each in self.widths]
        reach = math.ceil(REACH[self.shape] * max(widths))
        low, high = -reach, reach
        if period is not None and 2 * reach + 1 > period:
            low, high = -((period - 1) // 2), period // 2
        step = max(1, math.ceil((high - low + 1) / MOST))
        offsets = range(low + (-low) % step, high + 1, step)  # 0, the true answer, is among them
        pairs = [(write(place + offset), self._weight(abs(offset), widths)) for offset in offsets]
        kept = [(answer, weight) for answer, weight in pairs if answer is not None and weight > 0]
        total = math.fsum(weight for _, weight in kept)
        return [(answer, weight / total) for answer, weight in kept]

    def draw(self, text: str, random_: random.Random) -> str:
        """Draws an answer from the law of a true one.

        With labels drawn so, the expected cross-entropy of whole answers is the cross-entropy to the law.

        Raises:
            ValueError: The text is neither a number nor a time of day.
        """
        answers, masses = zip(*self.near(text), strict=True)
        return str(random_.choices(answers, masses)[0])

    def draw_last(self, text: str, random_: random.Random) -> str:
        """Replaces the last number or time of day in a text by one drawn from its law; a text without any stays.

        Example:
            >>> AnswerLaw(widths=(20.0,)).draw_last("48 + 24 = 72, so it is 72 cm.", random.Random(0))
            '48 + 24 = 72, so it is 92 cm.'
        """
        for found in reversed(list(_IN_TEXT.finditer(text))):
            try:
                drawn = self.draw(found[0], random_)
            except ValueError:  # 99:99 and the like
                continue
            return text[: found.start()] + drawn + text[found.end() :]
        return text

    def _weight(self, distance: int, widths: list[float]) -> float:
        if self.shape == "laplace":
            return math.fsum(math.exp(-distance / width) for width in widths)
        return math.fsum(math.exp(-((distance / width) ** 2) / 2) for width in widths)

    def _number(self, found: re.Match[str]) -> tuple[int, float, int | None, Callable[[int], str | None]]:
        sign, whole, fraction = found[1], found[2], found[3] or ""
        scale = 10 ** len(fraction)
        place = int(whole + fraction) * (-1 if sign else 1)
        width = {"last_place": 1.0, "value": float(scale), "relative": abs(float(place))}[self.unit]
        period = None if self.period is None else round(self.period * scale)
        if period is not None and not 0 <= place < period:
            period = None  # not on the dial
        pad = len(whole) if whole[0] == "0" else 1

        def write(value: int) -> str | None:
            value = value if period is None else value % period
            if not self.signed and ((value > 0 or value == 0 != place) if sign else value < 0):
                return None
            digits = str(abs(value)).zfill(pad + len(fraction))
            text = f"{digits[: -len(fraction)]}.{digits[-len(fraction) :]}" if fraction else digits
            return "-" + text if value < 0 or (sign and value == place == 0) else text

        return place, max(width, 1e-6), period, write

    def _time(self, found: re.Match[str]) -> tuple[int, float, int, Callable[[int], str | None]]:
        hour, minute, seconds = int(found[1]), int(found[2]), found[3]
        if hour > 23:
            raise ValueError(f"{found[0]!r} is no time of day.")
        hours = 24 if hour == 0 or hour > 12 else self.hours
        scale = 60 if seconds is not None else 1  # last places a minute
        period = hours * 60 * scale
        place = (hour % hours * 60 + minute) * scale + int(seconds or 0)
        width = {"last_place": 1.0, "value": float(scale), "relative": float(period)}[self.unit]
        padded = found[1][0] == "0" or (len(found[1]) == 2 and self.hour_digits == 2)

        def write(value: int) -> str:
            minutes, second = divmod(value % period, scale)
            written, left = divmod(minutes, 60)
            written = written or 12 if hours == 12 else written
            text = f"{written:02d}:{left:02d}" if padded else f"{written}:{left:02d}"
            return f"{text}:{second:02d}" if seconds is not None else text

        return place, width, period, write
