"""A drawing surface for instruments: smooth shapes at twice the size, in image sides.

Places and lengths are shares of the picture's side, x to the right and y down; angles are degrees clockwise from
twelve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image, ImageDraw

from datamodules.sources.glyphs import glyphs

OVERSAMPLING = 2
Colour = tuple[int, int, int]
Point = tuple[float, float]


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Returns a colour between two; `share` 0 is the first."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def toward(place: Point, angle: float, distance: float) -> Point:
    """Returns the place at a distance in a direction.

    >>> [round(number, 6) for number in toward((0.5, 0.5), 90, 0.25)]
    [0.75, 0.5]
    """
    turn = math.radians(angle)
    return place[0] + distance * math.sin(turn), place[1] - distance * math.cos(turn)


class Canvas:
    """One picture in the making.

    Args:
        size: Side of the finished square picture in pixels.
        background: Its colour.
    """

    def __init__(self, size: int, background: Colour) -> None:
        self.size = size
        self.side = size * OVERSAMPLING
        self.image = Image.new("RGB", (self.side, self.side), background)
        self.draw = ImageDraw.Draw(self.image)

    @property
    def pixel(self) -> float:
        """One pixel of the finished picture, in sides."""
        return 1 / self.size

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """Fills an outline."""
        self.draw.polygon([(x * self.side, y * self.side) for x, y in points], fill=fill)

    def disc(self, place: Point, radius: float, fill: Colour) -> None:
        """Fills a circle."""
        x, y, r = place[0] * self.side, place[1] * self.side, radius * self.side
        self.draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour, corner: float = 0.0) -> None:
        """Fills a rectangle, its corners rounded by a radius."""
        shape = (left * self.side, top * self.side, right * self.side, bottom * self.side)
        if corner:
            self.draw.rounded_rectangle(shape, radius=corner * self.side, fill=fill)
        else:
            self.draw.rectangle(shape, fill=fill)

    def line(self, start: Point, end: Point, width: float, fill: Colour, tip: float | None = None) -> None:
        """Fills a straight line of at least a pixel.

        Args:
            start: Where it begins.
            end: Where it ends.
            width: Its width.
            fill: Its colour.
            tip: Its width at the end; None for the same.
        """
        length = math.dist(start, end)
        if length == 0:
            return
        along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        half = max(width, self.pixel) / 2
        last = half if tip is None else max(tip / 2, 0.3 * self.pixel)
        self.polygon(
            [
                (start[0] - half * along[1], start[1] + half * along[0]),
                (start[0] + half * along[1], start[1] - half * along[0]),
                (end[0] + last * along[1], end[1] - last * along[0]),
                (end[0] - last * along[1], end[1] + last * along[0]),
            ],
            fill,
        )

    def arc(self, place: Point, radius: float, start: float, sweep: float, width: float, fill: Colour) -> None:
        """Draws a band along a circle, its outer edge at `radius`."""
        x, y, r = place[0] * self.side, place[1] * self.side, radius * self.side
        pixels = max(1, round(width * self.side))
        # Pillow measures clockwise from three.
        self.draw.arc((x - r, y - r, x + r, y + r), start - 90, start + sweep - 90, fill=fill, width=pixels)

    def text(
        self, place: Point, text: str, height: float, fill: Colour, *, turn: float = 0.0, bold: bool = False
    ) -> None:
        """Writes a word centred on a place.

        Args:
            place: Its middle.
            text: The word.
            height: Of the letters' em, about 1.4 times a digit's height; at least 6 pixels of the finished picture.
            fill: Its colour.
            turn: Degrees clockwise.
            bold: Whether strokes are thicker.
        """
        mask = glyphs(text, max(6 * OVERSAMPLING, round(height * self.side)), bold)
        if turn % 360:
            mask = mask.rotate(-turn, Image.Resampling.BILINEAR, expand=True)
        left = round(place[0] * self.side - mask.width / 2)
        top = round(place[1] * self.side - mask.height / 2)
        self.draw.bitmap((left, top), mask, fill=fill)

    def finish(self) -> Image.Image:
        """Returns the picture at its size."""
        return self.image.reduce(OVERSAMPLING)
