"""What an instrument shows: a value on a scale, its unit, and how closely a person can read it.

One real example::

    >>> reading = ScaleReading(Decimal("4.36"), "bar", tick=Decimal("0.2"), low=Decimal(0), high=Decimal(10))
    >>> reading.text(), reading.text(unit=True), [str(end) for end in reading.interval]
    ('4.36', '4.36 bar', ['4.26', '4.46'])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from datamodules.sources.dice import Dice


@dataclass(frozen=True)
class Scale:
    """A row of ticks.

    Attributes:
        low: First value.
        high: Last value.
        major: Step between numbered ticks, which stand at its multiples.
        minor: Step between the smallest ticks; divides `major` evenly.
        unit: As it is printed, e.g. "bar"; empty for none.
    """

    low: Decimal
    high: Decimal
    major: Decimal
    minor: Decimal
    unit: str

    @property
    def span(self) -> Decimal:
        """Difference between last and first value."""
        return self.high - self.low

    def share(self, value: Decimal | float) -> float:
        """Returns where a value lies: 0 at the first tick, 1 at the last."""
        return (float(value) - float(self.low)) / float(self.span)

    def ticks(self) -> list[tuple[Decimal, int]]:
        """Returns all ticks with their rank: 2 numbered, 1 halfway between numbered ones, 0 the rest."""
        per_major = int(self.major / self.minor)
        half = per_major // 2 if per_major % 2 == 0 else 0
        first, last = math.ceil(self.low / self.minor), math.floor(self.high / self.minor)
        ranks = {0: 2, half: 1} if half else {0: 2}
        return [(self.minor * i, ranks.get(i % per_major, 0)) for i in range(first, last + 1)]

    def reading(self, dice: Dice, parts: int = 5, margin: float = 0.0) -> ScaleReading:
        """Draws a value.

        Args:
            dice: Random choices.
            parts: Into how many parts a person divides the space between two ticks.
            margin: Share of the scale at either end that is left out.
        """
        grain, spare = self.minor / parts, self.span * Decimal(str(margin))
        low, high = math.ceil((self.low + spare) / grain), math.floor((self.high - spare) / grain)
        return ScaleReading(grain * dice.whole(low, high), self.unit, self.minor, self.low, self.high)


@dataclass(frozen=True)
class ScaleReading:
    """A value as it is to be read.

    Attributes:
        value: The true value.
        unit: Its unit; empty for none.
        tick: Step between the smallest ticks, or of the last digit.
        low: First value of the scale.
        high: Last value of the scale.
        period: Length of a scale that closes on itself, 360 for a compass; None for others.
    """

    value: Decimal
    unit: str
    tick: Decimal
    low: Decimal
    high: Decimal
    period: Decimal | None = None

    @property
    def interval(self) -> tuple[Decimal, Decimal]:
        """Least and largest answer that count as right: half of the smallest tick to either side."""
        return self.value - self.tick / 2, self.value + self.tick / 2

    def text(self, unit: bool = False) -> str:
        """Returns the value in plain digits, with its unit where asked."""
        return f"{plain(self.value)} {self.unit}".strip() if unit else plain(self.value)


def plain(value: Decimal) -> str:
    """Returns a number without exponent, trailing zeros or negative zero.

    >>> plain(Decimal("12.50")), plain(Decimal("1E+2")), plain(Decimal("-0.0"))
    ('12.5', '100', '0')
    """
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def scales(unit: str, *rows: Sequence[str | int]) -> tuple[Scale, ...]:
    """Returns scales of one unit.

    Args:
        unit: The unit.
        *rows: `low, high, major, minor` of each scale.

    >>> scales("V", (0, 10, 2, "0.5"))[0].ticks()[:3]
    [(Decimal('0.0'), 2), (Decimal('0.5'), 0), (Decimal('1.0'), 1)]
    """
    found = []
    for row in rows:
        low, high, major, minor = (Decimal(str(number)) for number in row)
        found.append(Scale(low, high, major, minor, unit))
    return tuple(found)
