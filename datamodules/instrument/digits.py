"""Instruments that show digits: seven-segment displays and rolling counters."""

from __future__ import annotations

from decimal import Decimal

from datamodules.instrument.canvas import Canvas, Colour, mix
from datamodules.instrument.look import Look
from datamodules.instrument.picture import Drawing
from datamodules.instrument.scale_reading import ScaleReading
from datamodules.sources.dice import Dice

#   a      Segments of a digit; each is lit where the letter stands.
# f   b
#   g
# e   c
#   d
SEGMENTS = {
    "0": "abcdef", "1": "bc", "2": "abged", "3": "abgcd", "4": "fgbc",
    "5": "afgcd", "6": "afgedc", "7": "abc", "8": "abcdefg", "9": "abcdfg", "-": "g", " ": "",
}  # fmt: skip
DISPLAYS: tuple[tuple[Colour, Colour], ...] = (
    ((160, 175, 150), (25, 30, 25)),
    ((20, 10, 10), (255, 60, 45)),
    ((10, 20, 12), (90, 255, 120)),
    ((12, 16, 26), (110, 200, 255)),
    ((200, 205, 200), (15, 15, 15)),
)
"""Colours of the display and of its lit segments."""


def seven_segment(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A digital display."""
    name, unit, digits, decimals, signed = dice.pick(METERS)
    value = Decimal(dice.whole(0, 10**digits - 1)).scaleb(-decimals)
    if signed and dice.chance(0.25):
        value = -value
    text = f"{value:.{decimals}f}"
    behind, lit = dice.pick(DISPLAYS) if look.varied else DISPLAYS[4]
    middle, height = dice.between(0.4, 0.6), dice.between(0.2, 0.27)
    canvas.box(0.04, middle - height * 0.95, 0.96, middle + height * 0.95, look.case, corner=0.03)
    canvas.box(0.08, middle - height * 0.75, 0.92, middle + height * 0.75, behind, corner=0.01)
    places = sum(letter != "." for letter in text)
    width = min(0.66 / (1.25 * places), height * 0.55)
    slant = dice.pick((0.0, 0.08)) if look.varied else 0.0
    unlit = mix(behind, lit, 0.08) if dice.chance(0.5) else None
    left = 0.78 - width * 1.25 * places
    place = -1
    for letter in text:
        if letter == ".":
            x = left + width * (1.25 * place + 1.12)
            canvas.disc((x, middle + height * 0.47), height * 0.055, lit)
            continue
        place += 1
        _digit(canvas, left + width * 1.25 * place, middle, width, height, SEGMENTS[letter], lit, unlit, slant)
    canvas.text((0.855, middle + height * 0.35), unit, min(0.07, height * 0.32, 0.16 / len(unit)), lit)
    tick = Decimal(1).scaleb(-decimals)
    low, high = -(10 ** (digits - decimals)) if signed else 0, 10 ** (digits - decimals)
    return Drawing(name, ScaleReading(value, unit, tick, Decimal(low), Decimal(high)))


def _digit(
    canvas: Canvas,
    left: float,
    middle: float,
    width: float,
    height: float,
    lit: str,
    colour: Colour,
    unlit: Colour | None,
    slant: float,
) -> None:
    half, stroke = height / 2, min(width, height) * 0.18
    corners = {
        "a": ((0, -half), (width, -half)), "g": ((0, 0), (width, 0)), "d": ((0, half), (width, half)),
        "f": ((0, -half), (0, 0)), "b": ((width, -half), (width, 0)),
        "e": ((0, 0), (0, half)), "c": ((width, 0), (width, half)),
    }  # fmt: skip
    for segment, ((x0, y0), (x1, y1)) in corners.items():
        fill = colour if segment in lit else unlit
        if fill is None:
            continue
        gap = stroke * 0.35
        if y0 == y1:
            x0, x1 = x0 + gap, x1 - gap
        else:
            y0, y1 = y0 + gap, y1 - gap
        start = left + x0 - slant * y0, middle + y0
        end = left + x1 - slant * y1, middle + y1
        canvas.line(start, end, stroke, fill)


def rolling_counter(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A counter of drums, the last of which turns evenly; a decimal drum has a colour of its own.

    Drums in front of one that passes from 9 to 0 roll along with it, as in real meters.
    """
    name, unit, decimals = dice.pick(COUNTERS)
    drums = dice.whole(5, 6)
    value = dice.whole(0, 10**drums - 2) if dice.chance(0.85) else 10 ** dice.whole(2, drums - 1) - 1
    roll = dice.between(0.0, 0.35) if dice.chance(0.6) else 0.0  # how far the last drum has turned to its next digit
    middle, height = dice.between(0.4, 0.6), dice.between(0.16, 0.2)
    width = min(0.84 / drums, height * 0.9)
    left = 0.5 - width * drums / 2
    canvas.box(left - 0.04, middle - height * 1.2, 1 - left + 0.04, middle + height * 1.55, look.case, corner=0.02)
    black, white = (25, 25, 28), (245, 245, 240)
    text = f"{value:0{drums}d}"
    rolling = True
    for place in range(drums - 1, -1, -1):
        fraction = place >= drums - decimals
        paper, ink = ((200, 30, 30), white) if fraction else (black, white) if look.varied else (white, black)
        x = left + width * (place + 0.5)
        canvas.box(x - width * 0.46, middle - height * 0.75, x + width * 0.46, middle + height * 0.75, paper)
        shift = roll if rolling else 0.0
        digit = int(text[place])
        for step in (-1, 0, 1):
            y = middle + (step - shift) * height * 1.05
            if abs(y - middle) < height:
                canvas.text((x, y), str((digit + step) % 10), height * 0.85, ink, bold=look.bold)
        # What stands beyond the window of this drum is covered again.
        canvas.box(x - width * 0.5, middle - height * 1.1, x + width * 0.5, middle - height * 0.75, look.case)
        canvas.box(x - width * 0.5, middle + height * 0.75, x + width * 0.5, middle + height * 1.1, look.case)
        rolling = rolling and text[place] == "9"
    ink = (0, 0, 0) if sum(look.case) > 380 else (255, 255, 255)
    canvas.text((0.5, middle + height * 1.28), unit, 0.055, ink)
    if decimals:
        canvas.disc((left + width * (drums - decimals), middle + height * 0.88), 0.008, ink)
    top = 10 ** (drums - decimals)
    reading = ScaleReading(
        Decimal(value).scaleb(-decimals), unit, Decimal(1).scaleb(-decimals), Decimal(0), Decimal(top)
    )
    return Drawing(name, reading)


METERS = (
    ("digital multimeter", "V", 4, 2, True),
    ("digital multimeter", "mA", 4, 1, True),
    ("digital thermometer", "°C", 3, 1, True),
    ("digital scale", "kg", 4, 2, False),
    ("digital scale", "g", 4, 0, False),
    ("blood pressure monitor", "mmHg", 3, 0, False),
    ("hygrometer", "%", 2, 0, False),
)
"""Name, unit, digits, decimals, and whether the value may be negative."""
COUNTERS = (
    ("electricity meter", "kWh", 1),
    ("water meter", "m³", 2),
    ("gas meter", "m³", 3),
    ("odometer", "km", 0),
    ("odometer", "mi", 1),
)
