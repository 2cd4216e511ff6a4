"""What a family of instruments gives back: the reading, and where its scale lies in the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from datamodules.instrument.canvas import Canvas, Point
from datamodules.instrument.look import Look
from datamodules.instrument.scale_reading import ScaleReading
from datamodules.sources.dice import Dice

SCALE_POINTS = 13
"""How many places of a scale are told, evenly spaced in value."""


@dataclass(frozen=True)
class Drawing:
    """One instrument on a canvas.

    Attributes:
        name: What a person calls it, e.g. "pressure gauge".
        reading: What it shows.
        ask_unit: Whether there are several scales, so that the question must name the unit.
        scale: Places of the scale, from its first value to its last, in sides; empty where it has none.
        pivot: Where the needle turns; None where a marker moves along the scale.
    """

    name: str
    reading: ScaleReading
    ask_unit: bool = False
    scale: tuple[Point, ...] = ()
    pivot: Point | None = None


Family = Callable[[Canvas, Dice, Look], Drawing]
"""Draws one instrument with a random value."""


def along(place: Callable[[float], Point]) -> tuple[Point, ...]:
    """Returns the places of a scale.

    Args:
        place: Place of a share of the scale, 0 to 1.
    """
    return tuple(place(i / (SCALE_POINTS - 1)) for i in range(SCALE_POINTS))
