"""Draws clock faces with Pillow: quick enough that training never waits for them.

What is unusual: everything is drawn at twice the size and halved once (the cheapest smooth edges that Pillow
has), the rotation is in the coordinates instead of in the pixels, and numerals are small masks kept from one
face to the next. Angles are degrees clockwise from twelve; x grows to the right, y down.

One real example::

    spec = sample_face(np.random.default_rng(0))
    draw_face(spec, hour=3, minute=5, size=224)            # <PIL.Image.Image mode=RGB size=224x224>
"""

from __future__ import annotations

import math

from PIL import Image, ImageDraw, ImageFilter

from datamodules.clock.face_spec import FaceSpec, HandSpec
from datamodules.sources.glyphs import glyphs

OVERSAMPLING = 2
ROMAN = ("XII", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI")

# Right half of a hand's outline, from the axle to the tip: (share of the length, share of the width).
_OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "line": ((0.0, 0.5), (1.0, 0.5)),
    "rounded": ((0.0, 0.5), (0.96, 0.5), (1.0, 0.25)),
    "tapered": ((0.0, 0.6), (1.0, 0.2)),
    "leaf": ((0.0, 0.35), (0.45, 0.85), (1.0, 0.05)),
    "lance": ((0.0, 0.4), (0.55, 0.4), (0.68, 1.0), (0.8, 0.4), (1.0, 0.1)),
    "arrow": ((0.0, 0.4), (0.72, 0.4), (0.72, 1.1), (1.0, 0.05)),
}


def hand_angles(hour: int, minute: int, second: int = 0) -> tuple[float, float, float]:
    """Where the hands of a 12-hour clock stand; each moves continuously with the next.

    Args:
        hour: 0 to 23.
        minute: 0 to 59.
        second: 0 to 59.

    Returns:
        Degrees clockwise from twelve of the hour, minute and second hand.

    Raises:
        ValueError: A part is out of its range.

    >>> hand_angles(3, 30)
    (105.0, 180.0, 0.0)
    """
    for name, value, limit in (("hour", hour, 24), ("minute", minute, 60), ("second", second, 60)):
        if not 0 <= value < limit:
            raise ValueError(f"{name} must be from 0 to {limit - 1}, got {value}")
    minutes = minute + second / 60
    return 30.0 * (hour % 12) + minutes / 2, 6.0 * minutes, 6.0 * second


def draw_face(spec: FaceSpec, hour: int, minute: int, second: int | None = None, size: int = 224) -> Image.Image:
    """Draws one clock.

    Args:
        spec: What it looks like.
        hour: 0 to 23, shown on a 12-hour dial.
        minute: 0 to 59.
        second: 0 to 59, or None for 0. Moves the minute hand on even where there is no second hand.
        size: Side of the square image in pixels.

    Returns:
        An RGB image (size, size); the same for the same arguments, pixel for pixel.

    Raises:
        ValueError: The time or the size is out of range.
    """
    if size < 16:
        raise ValueError(f"a clock needs a size of at least 16 pixels, got {size}")
    angles = hand_angles(hour, minute, second or 0)
    pen = _Pen(spec, size * OVERSAMPLING)
    pen.wall()
    pen.dial()
    pen.ticks()
    pen.numerals()
    pen.hand(spec.hour_hand, angles[0], thinnest=1.5)
    pen.hand(spec.minute_hand, angles[1], thinnest=1.2)
    if spec.second_hand:
        pen.hand(spec.second_hand, angles[2], thinnest=0.5)
    pen.disc(0.0, 0.0, spec.cap, (spec.second_hand or spec.hour_hand).colour)
    image = pen.image.reduce(OVERSAMPLING)
    return image.filter(ImageFilter.BoxBlur(spec.blur * size)) if spec.blur else image


class _Pen:
    """Draws in dial coordinates: radii from the centre, `up` towards twelve and `right` towards three."""

    def __init__(self, spec: FaceSpec, side: int) -> None:
        self.spec, self.side = spec, side
        self.image = Image.new("RGB", (side, side), spec.background[0])
        self.draw = ImageDraw.Draw(self.image)
        self.x, self.y = spec.centre[0] * side, spec.centre[1] * side
        self.radius = spec.radius * side

    def direction(self, angle: float) -> tuple[float, float]:
        """Step of one radius in pixels, (x, y), at a dial angle; the face's rotation is in it."""
        turn = math.radians(angle + self.spec.rotation)
        return self.radius * math.sin(turn), -self.radius * math.cos(turn)

    def disc(self, x: float, y: float, radius: float, colour: tuple[int, int, int]) -> None:
        pixels = radius * self.radius
        x, y = self.x + x, self.y + y
        self.draw.ellipse((x - pixels, y - pixels, x + pixels, y + pixels), fill=colour)

    def wall(self) -> None:
        top, bottom = self.spec.background
        if top == bottom:
            return
        bands, side = 48, self.side
        for band in range(1, bands):
            share = band / (bands - 1)
            colour = tuple(int(a + (b - a) * share) for a, b in zip(top, bottom, strict=True))
            self.draw.rectangle((0, band * side // bands, side, (band + 1) * side // bands), fill=colour)

    def dial(self) -> None:
        spec = self.spec
        layers = [(1.0, spec.dial)]
        if spec.rim_width:
            layers.insert(0, (1 + spec.rim_width, spec.rim))
        for extent, colour in layers:
            if spec.shape == "round":
                self.disc(0, 0, extent, colour)
            else:
                corner = extent * math.sqrt(2)
                steps = [self.direction(angle) for angle in (45, 135, 225, 315)]
                self.draw.polygon([(self.x + corner * x, self.y + corner * y) for x, y in steps], fill=colour)

    def border(self, angle: float) -> float:
        """Distance of the dial's edge from the centre at a dial angle."""
        if self.spec.shape == "round":
            return 1.0
        turn = math.radians(angle)
        return 1 / max(abs(math.sin(turn)), abs(math.cos(turn)))

    def ticks(self) -> None:
        spec, ticks = self.spec, self.spec.ticks
        if ticks.track:
            self.track(0.97)
        step = {"none": 60, "quarters": 15, "hours": 5, "minutes": 1}[ticks.which]
        if step == 1 and self.radius * math.tau / 60 < 4 * OVERSAMPLING:
            step = 5  # minute ticks this close would run together
        for minute in range(0, 60, step) if ticks.which != "none" else ():
            if minute == 0 and spec.mark:
                continue
            strength = 1.0 if minute % 5 == 0 else 0.5
            self.tick(6.0 * minute, ticks.length * strength, ticks.width * strength)
        if spec.mark:
            (x, y), tip, base, half = self.direction(0), 0.78, 0.95, 0.07
            corners = [(tip, 0.0), (base, half), (base, -half)]
            points = [(self.x + up * x - side * y, self.y + up * y + side * x) for up, side in corners]
            self.draw.polygon(points, fill=ticks.colour)

    def tick(self, angle: float, length: float, width: float) -> None:
        ticks, (x, y) = self.spec.ticks, self.direction(angle)
        outer = self.border(angle) * 0.96
        if ticks.shape == "dot":
            self.disc(
                outer * x - width * x,
                outer * y - width * y,
                max(width * 0.8, 0.6 / self.radius),
                ticks.colour,
            )
            return
        inner, half = outer - length, max(width / 2, 0.5 / self.radius)
        tip = half * 0.3 if ticks.shape == "wedge" else half
        self.draw.polygon(
            [
                (self.x + outer * x - half * y, self.y + outer * y + half * x),
                (self.x + outer * x + half * y, self.y + outer * y - half * x),
                (self.x + inner * x + tip * y, self.y + inner * y - tip * x),
                (self.x + inner * x - tip * y, self.y + inner * y + tip * x),
            ],
            fill=ticks.colour,
        )

    def track(self, extent: float) -> None:
        colour, pixels = self.spec.ticks.colour, extent * self.radius
        if self.spec.shape == "round":
            box = (self.x - pixels, self.y - pixels, self.x + pixels, self.y + pixels)
            self.draw.ellipse(box, outline=colour, width=OVERSAMPLING)
        else:
            steps = [self.direction(angle) for angle in (45, 135, 225, 315, 45)]
            reach = extent * math.sqrt(2)
            points = [(self.x + reach * x, self.y + reach * y) for x, y in steps]
            self.draw.line(points, fill=colour, width=OVERSAMPLING)

    def numerals(self) -> None:
        numerals, rotation = self.spec.numerals, self.spec.rotation
        if numerals.system == "none":
            return
        height = max(6, round(numerals.size * self.radius * 1.4))  # the em is about 1.4 times a digit's height
        for position in range(0, 12, 1 if numerals.which == "all" else 3):
            text = ROMAN[position] if numerals.system == "roman" else str(position or 12)
            mask = glyphs(text, height, numerals.bold)
            turn = rotation + (30.0 * position if numerals.radial else 0.0)
            if turn % 360:
                mask = mask.rotate(-turn, Image.Resampling.BILINEAR, expand=True)
            x, y = self.direction(30.0 * position)
            distance = numerals.distance * min(self.border(30.0 * position), 1.12)
            left, top = self.x + distance * x - mask.width / 2, self.y + distance * y - mask.height / 2
            self.draw.bitmap((round(left), round(top)), mask, fill=numerals.colour)

    def hand(self, hand: HandSpec, angle: float, thinnest: float) -> None:
        """Draws one hand, at least `thinnest` pixels wide in the finished image."""
        x, y = self.direction(angle)
        width = max(hand.width, thinnest * OVERSAMPLING / self.radius)
        right = [(share * hand.length, across * width) for share, across in _OUTLINES[hand.shape]]
        right.insert(0, (-hand.tail, right[0][1]))
        outline = right + [(along, -across) for along, across in reversed(right)]
        self.draw.polygon(
            [(self.x + along * x - across * y, self.y + along * y + across * x) for along, across in outline],
            fill=hand.colour,
        )
        if hand.shape == "rounded":
            tip = hand.length - width / 2
            self.disc(tip * x, tip * y, width / 2, hand.colour)
