"""How an instrument looks apart from its scale: colours, wear, and what the camera did to the picture.

Two styles: `plain` (black on white, nothing in the way) and `varied` (all there is). Everything is legible by
construction: ink contrasts with the face, and glare and dirt are faint where the scale is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFilter

from datamodules.instrument.canvas import Canvas, Colour, Point, mix
from datamodules.sources.dice import Dice

STYLES = ("plain", "varied")

_DARK: tuple[Colour, ...] = ((0, 0, 0), (25, 25, 30), (10, 30, 80), (80, 15, 15), (10, 60, 40))
_LIGHT: tuple[Colour, ...] = ((255, 255, 255), (235, 235, 225), (255, 235, 150), (180, 230, 255))
_ON_LIGHT: tuple[Colour, ...] = ((200, 15, 15), (15, 60, 190), (0, 100, 50), (200, 80, 0), (0, 0, 0))
_ON_DARK: tuple[Colour, ...] = ((255, 90, 70), (255, 200, 50), (110, 220, 255), (140, 255, 140), (255, 255, 255))


@dataclass(frozen=True)
class Look:
    """Colours and condition of one instrument.

    Attributes:
        varied: Whether it is of the varied style.
        wall: Colour behind the instrument.
        case: Colour of its body.
        face: Colour behind the scale.
        ink: Colour of ticks and numbers.
        faint: Colour of a second scale and of small print.
        signal: Colour of needle, liquid or marker.
        bold: Whether numbers are bold.
    """

    varied: bool
    wall: Colour
    case: Colour
    face: Colour
    ink: Colour
    faint: Colour
    signal: Colour
    bold: bool


def sample_look(dice: Dice, style: str) -> Look:
    """Draws a look.

    Args:
        dice: Random choices.
        style: One of `STYLES`.
    """
    if style == "plain":
        black, white = (0, 0, 0), (255, 255, 255)
        return Look(False, white, (60, 60, 65), white, black, (90, 90, 90), dice.pick(((200, 15, 15), black)), False)
    dark = dice.chance(0.3)
    level = dice.between(8, 45) if dark else dice.between(215, 255)
    face = _shade(dice, level, 12)
    ink = dice.pick(_LIGHT if dark else _DARK)
    return Look(
        varied=True,
        wall=_shade(dice, dice.between(20, 245), 60),
        case=_shade(dice, dice.between(20, 235), 50),
        face=face,
        ink=ink,
        faint=mix(ink, face, 0.25),
        signal=dice.pick(_ON_DARK if dark else _ON_LIGHT),
        bold=dice.chance(0.4),
    )


def _shade(dice: Dice, level: float, spread: float) -> Colour:
    red, green, blue = (int(min(255, max(0, level + dice.between(-spread, spread)))) for _ in range(3))
    return red, green, blue


def clutter(canvas: Canvas, dice: Dice, look: Look) -> None:
    """Draws what stands around an instrument, before it is drawn over: bands of a wall, pipes, shadows."""
    if not look.varied or dice.chance(0.4):
        return
    for _ in range(dice.whole(1, 4)):
        colour = mix(look.wall, _shade(dice, dice.between(20, 235), 60), dice.between(0.2, 0.7))
        place = dice.between(-0.1, 1.1)
        if dice.chance(0.5):
            end = dice.between(-0.1, 1.1)
            start, stop = ((place, -0.1), (end, 1.1)) if dice.chance(0.5) else ((-0.1, place), (1.1, end))
            canvas.line(start, stop, dice.between(0.01, 0.12), colour)
        else:
            width, top = dice.between(0.05, 0.4), dice.between(-0.1, 0.9)
            canvas.box(place, top, place + width, top + dice.between(0.05, 0.4), colour, corner=0.01)


@dataclass(frozen=True)
class Camera:
    """What happens between instrument and picture.

    Attributes:
        corners: Where the picture's corners (top left, bottom left, bottom right, top right) are taken from, in sides;
            None for a straight view.
        glare: Place and radius in sides and strength (0 to 1) of a reflection; None for none.
        specks: Specks of dirt: place and radius in sides.
        blur: Radius of the blur in sides; 0 for none.
        light: Factor of the brightness.
    """

    corners: tuple[Point, Point, Point, Point] | None = None
    glare: tuple[Point, float, float] | None = None
    specks: tuple[tuple[Point, float], ...] = ()
    blur: float = 0.0
    light: float = 1.0

    def take(self, image: Image.Image, wall: Colour) -> Image.Image:
        """Returns the picture that this camera takes.

        Args:
            image: The finished drawing, square.
            wall: What lies beyond its edges.
        """
        side = image.width
        if self.corners is not None:
            quad = [number * side for corner in self.corners for number in corner]
            image = image.transform(image.size, Image.Transform.QUAD, quad, Image.Resampling.BILINEAR, fillcolor=wall)
        if self.specks:
            draw = ImageDraw.Draw(image)
            for (x, y), radius in self.specks:
                x, y, r = x * side, y * side, radius * side
                draw.ellipse((x - r, y - r, x + r, y + r), fill=mix(wall, (70, 60, 50), 0.7))
        if self.glare is not None:
            (x, y), radius, strength = self.glare
            reach = round(2 * radius * side)
            spot = _spot().resize((reach, reach)).point(lambda level: int(level * strength))
            image.paste((255, 255, 255), (round(x * side - reach / 2), round(y * side - reach / 2)), spot)
        if self.light != 1.0:
            image = image.point(lambda level: min(255, int(level * self.light)))
        return image.filter(ImageFilter.BoxBlur(self.blur * side)) if self.blur else image

    def seen(self, place: Point) -> Point:
        """Returns where a place of the drawing lies in the picture.

        The transform is bilinear in the picture's coordinates; three steps of Newton's method invert it to 1e-6.
        """
        if self.corners is None:
            return place
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = self.corners
        u, v = place
        for _ in range(3):
            x = x0 * (1 - u) * (1 - v) + x1 * (1 - u) * v + x2 * u * v + x3 * u * (1 - v) - place[0]
            y = y0 * (1 - u) * (1 - v) + y1 * (1 - u) * v + y2 * u * v + y3 * u * (1 - v) - place[1]
            xu, xv = (x3 - x0) * (1 - v) + (x2 - x1) * v, (x1 - x0) * (1 - u) + (x2 - x3) * u
            yu, yv = (y3 - y0) * (1 - v) + (y2 - y1) * v, (y1 - y0) * (1 - u) + (y2 - y3) * u
            area = xu * yv - xv * yu
            u, v = u - (x * yv - y * xv) / area, v - (y * xu - x * yu) / area
        return u, v


def sample_camera(dice: Dice, style: str) -> Camera:
    """Draws a camera; the plain style has a perfect one.

    Args:
        dice: Random choices.
        style: One of `STYLES`.
    """
    if style == "plain":
        return Camera()
    corners = None
    if dice.chance(0.45):
        turn, bend = math.radians(dice.between(-14, 14)), 0.07
        sine, cosine = math.sin(turn), math.cos(turn)
        placed = []
        for x, y in ((-0.5, -0.5), (-0.5, 0.5), (0.5, 0.5), (0.5, -0.5)):
            x, y = x * (1 + dice.between(-bend, bend)), y * (1 + dice.between(-bend, bend))
            placed.append((0.5 + 1.04 * (x * cosine - y * sine), 0.5 + 1.04 * (x * sine + y * cosine)))
        corners = (placed[0], placed[1], placed[2], placed[3])
    glare = None
    if dice.chance(0.25):
        place = dice.between(0.2, 0.8), dice.between(0.2, 0.8)
        glare = (place, dice.between(0.1, 0.3), dice.between(0.25, 0.6))
    specks: tuple[tuple[Point, float], ...] = ()
    if dice.chance(0.2):
        specks = tuple(
            ((dice.between(0, 1), dice.between(0, 1)), dice.between(0.002, 0.008)) for _ in range(dice.whole(2, 8))
        )
    blur = dice.between(0.002, 0.005) if dice.chance(0.25) else 0.0
    return Camera(corners, glare, specks, blur, dice.between(0.7, 1.1) if dice.chance(0.4) else 1.0)


_SPOT: list[Image.Image] = []


def _spot() -> Image.Image:
    """A round spot (mode L) that fades towards its edge."""
    if not _SPOT:
        _SPOT.append(Image.radial_gradient("L").point(lambda level: max(0, 255 - 2 * level) if level < 128 else 0))
    return _SPOT[0]
