"""A drawing surface for charts: smooth shapes at twice the size, crisp text at the final size.

What is unusual: shapes are drawn at once, text waits until the shapes have been halved; masks of words are
kept from one chart to the next. Coordinates are pixels of the finished image.

One real example::

    canvas = Canvas(336, 336, (255, 255, 255))
    canvas.rectangle(10, 10, 60, 200, (31, 119, 180))
    canvas.text(35, 205, "2019", 11, (40, 40, 40), anchor="mt")
    image = canvas.finish()
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Point = tuple[float, float]
OVERSAMPLING = 2


class Canvas:
    """Collects shapes and words of one chart.

    Args:
        width: Pixels of the finished image.
        height: Pixels of the finished image.
        background: Its colour.
    """

    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * OVERSAMPLING, height * OVERSAMPLING), background)
        self._draw = ImageDraw.Draw(self._image)
        self._words: list[tuple[float, float, str, int, Colour, str, int]] = []

    def rectangle(self, left: float, top: float, right: float, bottom: float, fill: Colour) -> None:
        """Fills a rectangle; its edges lie on half pixels."""
        left, top = round(left * OVERSAMPLING), round(top * OVERSAMPLING)
        right, bottom = round(right * OVERSAMPLING) - 1, round(bottom * OVERSAMPLING) - 1
        if right >= left and bottom >= top:
            self._draw.rectangle((left, top, right, bottom), fill=fill)

    def straight(self, start: Point, end: Point, fill: Colour) -> None:
        """Draws a horizontal or vertical line one pixel wide, without blur."""
        (x0, y0), (x1, y1) = start, end
        x0, y0 = math.floor(x0), math.floor(y0)
        across = (x0, y0, math.floor(x1), y0 + 1) if y0 == math.floor(y1) else (x0, y0, x0 + 1, math.floor(y1))
        self.rectangle(*across, fill)

    def line(self, points: Sequence[Point], fill: Colour, width: float) -> None:
        """Draws a line through points."""
        scaled = [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in points]
        self._draw.line(scaled, fill=fill, width=max(1, round(width * OVERSAMPLING)), joint="curve")

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """Fills a polygon."""
        self._draw.polygon([(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in points], fill=fill)

    def disc(self, x: float, y: float, radius: float, fill: Colour) -> None:
        """Fills a circle."""
        x, y, radius = x * OVERSAMPLING, y * OVERSAMPLING, radius * OVERSAMPLING
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)

    def slice(self, x: float, y: float, radius: float, start: float, end: float, fill: Colour) -> None:
        """Fills a slice of a circle; degrees clockwise from twelve."""
        x, y, radius = x * OVERSAMPLING, y * OVERSAMPLING, radius * OVERSAMPLING
        self._draw.pieslice((x - radius, y - radius, x + radius, y + radius), start - 90, end - 90, fill=fill)

    def text(
        self, x: float, y: float, text: str, size: int, fill: Colour, anchor: str = "lt", turned: bool = False
    ) -> None:
        """Puts a word.

        Args:
            x: Where the anchor stands.
            y: Where the anchor stands.
            text: One line.
            size: Font size in pixels.
            fill: Colour.
            anchor: Horizontally `l`, `m`, `r`, then vertically `t`, `m`, `b`, of the box as it appears.
            turned: Whether it reads from bottom to top.
        """
        self._words.append((x, y, text, size, fill, anchor, int(turned)))

    def finish(self) -> Image.Image:
        """Returns the chart, RGB."""
        image = self._image.reduce(OVERSAMPLING)
        draw = ImageDraw.Draw(image)
        for x, y, text, size, fill, anchor, turned in self._words:
            mask = word(text, size)
            if turned:
                mask = mask.transpose(Image.Transpose.ROTATE_90)
            x -= mask.width * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor[0]]
            y -= mask.height * {"t": 0.0, "m": 0.5, "b": 1.0}[anchor[1]]
            draw.bitmap((round(x), round(y)), mask, fill=fill)
        return image


@functools.lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=8192)
def word(text: str, size: int) -> Image.Image:
    """Mask (mode L) of one line of text, from the top of its capitals to below its descenders."""
    font = _font(size)
    left, top, right, bottom = font.getbbox(text)
    _, highest, _, lowest = font.getbbox("Hg")
    mask = Image.new("L", (math.ceil(right - left) or 1, math.ceil(max(bottom, lowest) - min(top, highest))))
    ImageDraw.Draw(mask).text((-left, -min(top, highest)), text, fill=255, font=font)
    return mask


def wrapped(text: str, size: int, width: float) -> list[str]:
    """Breaks a text between words into lines that fit a width in pixels (a longer word stays whole)."""
    lines: list[str] = []
    for part in text.split():
        if lines and word(f"{lines[-1]} {part}", size).width <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines
