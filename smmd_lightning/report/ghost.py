"""Ghost hands: the time a model read, drawn over the face it read it from.

Unusual: hands go over the picture only where it is known where the dial lies (`meta["dial"]`, which drawn clocks have).
On a photograph that would be a guess, so there a schematic dial is drawn beside it.

Angles are degrees clockwise from twelve; lengths in shares of the picture's side.

One real example::

    >>> hands("03:30", DialPlace())
    (Hand(angle=105.0, length=0.23, width=0.03), Hand(angle=180.0, length=0.36, width=0.02))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smmd_lightning.answers import parse_time

if TYPE_CHECKING:
    from PIL.Image import Image

TRUE_COLOUR, GHOST_COLOUR = (0, 158, 115), (213, 94, 0)  # Okabe and Ito's green and vermilion


@dataclass(frozen=True)
class DialPlace:
    """Where a dial lies in a picture.

    Attributes:
        centre: (x, y) in shares of width and height.
        radius: In shares of the width.
        rotation: Degrees clockwise by which it is turned.
    """

    centre: tuple[float, float] = (0.5, 0.5)
    radius: float = 0.45
    rotation: float = 0.0

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> DialPlace | None:
        """Reads `meta["dial"]`: [x, y, radius, rotation]; None where there is none."""
        found = meta.get("dial")
        if not isinstance(found, (list, tuple)) or len(found) != 4:
            return None
        if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in found):
            return None
        x, y, radius, rotation = found
        return cls((x, y), radius, rotation)


@dataclass(frozen=True)
class Hand:
    """One hand: degrees clockwise from the picture's top, length and width in shares of its side."""

    angle: float
    length: float
    width: float


def hands(time: str | None, dial: DialPlace) -> tuple[Hand, ...]:
    """Hour and minute hand, and the second hand where seconds are told; empty if the text is no time.

    Args:
        time: A time as answers are written, "03:05".
        dial: Where it is shown.
    """
    read = parse_time(time) if time else None
    if read is None:
        return ()
    minutes = read.minute + (read.second or 0) / 60
    angles = [(30 * (read.hour % 12) + minutes / 2, 0.5, 0.03), (6 * minutes, 0.8, 0.02)]
    if read.second is not None:
        angles.append((6.0 * read.second, 0.9, 0.008))
    return tuple(
        Hand((angle + dial.rotation) % 360, round(share * dial.radius, 2), width) for angle, share, width in angles
    )


def tip(hand: Hand, dial: DialPlace) -> tuple[float, float]:
    """End of a hand, (x, y) in shares of a square picture."""
    angle = math.radians(hand.angle)
    return dial.centre[0] + hand.length * math.sin(angle), dial.centre[1] - hand.length * math.cos(angle)


def draw_hands(image: Image, time: str | None, dial: DialPlace, colour: tuple[int, int, int] = GHOST_COLOUR) -> Image:
    """Draws the hands of a time over a copy of a picture, half transparent.

    Args:
        image: The picture, RGB.
        time: A time as answers are written; None or no time draws nothing.
        dial: Where the dial lies in it.
        colour: RGB.
    """
    from PIL import Image as Images
    from PIL import ImageDraw

    layer = Images.new("RGBA", image.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    side = image.size[0]
    start = (dial.centre[0] * image.size[0], dial.centre[1] * image.size[1])
    for hand in hands(time, dial):
        angle = math.radians(hand.angle)
        end = (start[0] + hand.length * side * math.sin(angle), start[1] - hand.length * side * math.cos(angle))
        pen.line((start, end), fill=(*colour, 170), width=max(2, round(hand.width * side)))
    return Images.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def overlay(row: Mapping[str, Any], picture: Image | None, size: int) -> Image:
    """Draws the time that was read over a sample's picture.

    Where it is not known where the dial lies in the picture, a schematic dial with both times stands in its corner, or
    alone where there is no picture.

    Args:
        row: A row of the prediction file.
        picture: The sample's picture.
        size: Side of the result in pixels.
    """
    dial = DialPlace.of(row.get("meta") or {})
    if picture is not None and dial is not None:
        return draw_hands(picture.convert("RGB").resize((size, size)), row.get("parsed"), dial)
    schematic = draw_hands(draw_dial(size), row.get("truth"), DialPlace(), TRUE_COLOUR)
    schematic = draw_hands(schematic, row.get("parsed"), DialPlace())
    if picture is None:
        return schematic
    whole = picture.convert("RGB").resize((size, size))
    whole.paste(schematic.resize((size // 3, size // 3)), (size - size // 3, size - size // 3))
    return whole


def draw_dial(size: int) -> Image:
    """An empty schematic dial, for pictures in which it is not known where the clock lies."""
    from PIL import Image as Images
    from PIL import ImageDraw

    image = Images.new("RGB", (size, size), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    pen.ellipse((0.05 * size, 0.05 * size, 0.95 * size, 0.95 * size), outline=(120, 120, 120), width=max(1, size // 80))
    for hour in range(12):
        angle = math.radians(30 * hour)
        ends = [(size * (0.5 + r * math.sin(angle)), size * (0.5 - r * math.cos(angle))) for r in (0.39, 0.44)]
        pen.line(ends, fill=(120, 120, 120), width=max(1, size // 80))
    return image
