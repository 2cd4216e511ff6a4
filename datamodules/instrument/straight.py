"""Instruments with a straight scale: columns of liquid, rulers, calipers, levels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal

from datamodules.instrument.canvas import Canvas, Colour, Point, mix
from datamodules.instrument.look import Look
from datamodules.instrument.picture import Drawing, along
from datamodules.instrument.scale_reading import Scale, ScaleReading, plain, scales
from datamodules.sources.dice import Dice

LIQUIDS: tuple[Colour, ...] = ((210, 30, 30), (40, 90, 200), (40, 150, 90), (160, 60, 160), (220, 130, 30))


def column_thermometer(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A thermometer with a column of liquid; a second scale in Fahrenheit now and then."""
    celsius, fahrenheit = dice.pick(COLUMN)
    both = look.varied and dice.chance(0.3)
    scale = celsius if both else dice.pick((celsius, fahrenheit))
    middle, half = 0.5 + (dice.between(-0.1, 0.1) if look.varied else 0.0), dice.between(0.17, 0.22)
    canvas.box(middle - half, 0.04, middle + half, 0.97, look.case, corner=0.05)
    canvas.box(middle - half + 0.02, 0.06, middle + half - 0.02, 0.95, look.face, corner=0.04)
    top, bottom, width = 0.13, 0.78, dice.between(0.018, 0.035)
    tube, liquid = mix(look.face, look.ink, 0.12), dice.pick(LIQUIDS[:2]) if look.varied else LIQUIDS[0]
    canvas.box(middle - width / 2 - 0.006, top - 0.03, middle + width / 2 + 0.006, 0.87, tube, corner=0.015)

    def place(share: float) -> Point:
        return middle, bottom + (top - bottom) * share

    reading = (dice.pick((celsius, fahrenheit)) if both else scale).reading(dice)
    share = (float(reading.value) - float(reading.low)) / float(reading.high - reading.low)
    canvas.disc((middle, 0.87), width * 1.2, liquid)
    canvas.box(middle - width / 2, place(share)[1], middle + width / 2, 0.87, liquid)
    _upright(canvas, scale, place, middle + width / 2 + 0.012, 1, look.ink, look)
    canvas.text((middle + half * 0.55, 0.9), scale.unit, 0.05, look.ink, bold=look.bold)
    if both:
        _upright(canvas, fahrenheit, place, middle - width / 2 - 0.012, -1, look.faint, look)
        canvas.text((middle - half * 0.55, 0.9), fahrenheit.unit, 0.05, look.faint)
    return Drawing("thermometer", reading, ask_unit=both, scale=along(place))


def measuring_cylinder(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A measuring cylinder; the liquid is read at the bottom of its meniscus."""
    scale = dice.pick(VOLUMES)
    middle, half = 0.5 + (dice.between(-0.12, 0.12) if look.varied else 0.0), dice.between(0.1, 0.15)
    glass = mix((235, 242, 245), look.face if min(look.face) > 200 else (235, 242, 245), 0.3)
    ink = look.ink if max(look.ink) < 140 else (20, 20, 30)
    canvas.box(middle - half * 1.7, 0.9, middle + half * 1.7, 0.95, mix(glass, (90, 100, 110), 0.5), corner=0.01)
    canvas.box(middle - half - 0.008, 0.05, middle + half + 0.008, 0.92, mix(glass, (90, 100, 110), 0.6), corner=0.01)
    canvas.box(middle - half, 0.05, middle + half, 0.91, glass, corner=0.01)

    def place(share: float) -> Point:
        return middle, 0.86 - 0.74 * share

    reading = scale.reading(dice, margin=0.04)
    level, curve = place(scale.share(reading.value))[1], half * 0.12
    liquid = mix(dice.pick(LIQUIDS), glass, dice.between(0.2, 0.5))
    canvas.box(middle - half, level - curve, middle + half, 0.91, liquid)
    steps = [i / 8 - 1 for i in range(17)]
    bowl = [(middle + half * x, level - curve * x * x) for x in steps]
    canvas.polygon([(middle - half, level - curve), *bowl, (middle + half, level - curve)], glass)
    for first, second in itertools.pairwise(bowl):
        canvas.line(first, second, canvas.pixel, mix(liquid, (0, 0, 0), 0.5))
    _upright(canvas, scale, place, middle - half * 0.95, 1, ink, look, largest=0.045)
    canvas.text((middle + half * 0.6, 0.08), scale.unit, 0.045, ink, bold=look.bold)
    return Drawing("measuring cylinder", reading, scale=along(place))


def ruler(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A ruler under a bar whose length is asked; the bar need not begin at zero."""
    scale = dice.pick(LENGTHS)
    top = dice.between(0.42, 0.58)
    wood = mix((235, 205, 140), look.face, 0.3) if dice.chance(0.5) else (225, 228, 232)
    ink: Colour = (15, 15, 20)
    canvas.box(-0.01, top, 1.01, top + 0.22, wood)
    left, right = dice.between(0.05, 0.09), dice.between(0.91, 0.95)

    def place(share: float) -> Point:
        return left + (right - left) * share, top

    _lying(canvas, scale, place, ink, look)
    canvas.text((left + 0.02, top + 0.18), scale.unit, 0.045, ink)
    grain = scale.minor / 2
    steps = int(scale.span / grain)
    length = grain * dice.whole(steps // 8, steps * 3 // 4)
    begin = Decimal(0) if dice.chance(0.5) else scale.major * dice.whole(0, int((scale.span - length) / scale.major))
    start, end = place(scale.share(begin)), place(scale.share(begin + length))
    thick = dice.between(0.05, 0.12)
    canvas.box(start[0], top - thick - 0.004, end[0], top - 0.004, dice.pick(LIQUIDS))
    reading = ScaleReading(length, scale.unit, scale.minor, scale.low, scale.high)
    return Drawing("ruler", reading)


def caliper(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A vernier caliper: millimetres on the beam, tenths where a line of the vernier meets one of the beam's."""
    ink, steel = (15, 15, 20), mix((205, 208, 212), look.face, 0.15)
    first = dice.whole(0, 8) * 10
    window = 50  # millimetres that are seen
    unit = 0.92 / window

    def at(millimetres: float) -> float:
        return 0.04 + unit * (millimetres - first)

    value = Decimal(dice.whole(first * 10 + 20, (first + window - 14) * 10)) / 10
    top = 0.3
    canvas.box(-0.01, top, 1.01, top + 0.22, steel)
    for tick in range(first, first + window + 1):
        length = 0.1 if tick % 10 == 0 else 0.075 if tick % 5 == 0 else 0.05
        canvas.line((at(tick), top + 0.22), (at(tick), top + 0.22 - length), 0.003, ink)
        if tick % 10 == 0:
            canvas.text((at(tick), top + 0.09), str(tick), 0.055, ink, bold=look.bold)
    slide = mix(steel, (255, 255, 255), 0.35)
    canvas.box(at(float(value)) - 1.5 * unit, top + 0.222, at(float(value)) + 11.5 * unit, top + 0.44, slide)
    for line in range(11):
        x = at(float(value) + 0.9 * line)
        length = 0.1 if line % 5 == 0 else 0.07
        canvas.line((x, top + 0.222), (x, top + 0.222 + length), 0.003, ink)
        if line % 5 == 0:
            canvas.text((x, top + 0.37), str(line), 0.05, ink)
    canvas.text((0.955, top + 0.028), "mm", 0.035, ink)
    reading = ScaleReading(value, "mm", Decimal("0.1"), Decimal(first), Decimal(first + window))
    return Drawing("vernier caliper", reading, scale=along(lambda share: (at(first + window * share), top + 0.22)))


def bubble_level(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A spirit level with a graduated tube: by how many divisions the bubble lies off the middle."""
    scale = dice.pick(TILTS)
    middle = dice.between(0.4, 0.6)
    canvas.box(0.02, middle - 0.16, 0.98, middle + 0.16, look.case, corner=0.02)
    liquid: Colour = dice.pick(((190, 225, 70), (170, 230, 160), (230, 215, 60)))
    canvas.box(0.1, middle - 0.075, 0.9, middle + 0.075, liquid, corner=0.07)

    def place(share: float) -> Point:
        return 0.18 + 0.64 * share, middle

    for value, rank in scale.ticks():
        x, length = place(scale.share(value))[0], 0.075 if rank == 2 else 0.045
        canvas.line((x, middle - length), (x, middle + length), 0.006 if value == 0 else 0.003, (20, 30, 10))
        if rank == 2:
            ink = (0, 0, 0) if sum(look.case) > 380 else (255, 255, 255)
            canvas.text((x, middle + 0.115), plain(value), 0.05, ink, bold=look.bold)
    reading = scale.reading(dice, parts=2, margin=0.08)
    x, half = place(scale.share(reading.value))[0], dice.between(0.05, 0.08)
    canvas.box(x - half, middle - 0.045, x + half, middle + 0.045, mix(liquid, (255, 255, 255), 0.65), corner=0.044)
    canvas.line((x, middle - 0.03), (x, middle + 0.03), 0.004, (60, 80, 20))
    ink = (0, 0, 0) if sum(look.case) > 380 else (255, 255, 255)
    canvas.text((0.5, middle - 0.118), scale.unit, 0.045, ink)
    return Drawing("spirit level", reading, scale=along(place))


def battery_gauge(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A battery that fills from left to right, with marks at its tenths or quarters, read in percent."""
    scale = scales("%", (0, 100, *dice.pick(((50, 10), (50, 25), (20, 10)))))[0]
    middle = dice.between(0.42, 0.58)
    left, right, half = 0.1, 0.84, dice.between(0.12, 0.18)
    canvas.box(left - 0.02, middle - half - 0.02, right + 0.02, middle + half + 0.02, look.ink, corner=0.03)
    canvas.box(right + 0.02, middle - half * 0.4, right + 0.06, middle + half * 0.4, look.ink, corner=0.01)
    canvas.box(left, middle - half, right, middle + half, look.face, corner=0.02)

    def place(share: float) -> Point:
        return left + (right - left) * share, middle

    reading = scale.reading(dice, parts=5)
    share = scale.share(reading.value)
    full = (50, 170, 80) if share > 0.5 else (225, 165, 40) if share > 0.2 else (210, 50, 45)
    if share > 0:
        canvas.box(left, middle - half, place(share)[0], middle + half, full)
    for value, rank in scale.ticks()[1:-1]:
        x = place(scale.share(value))[0]
        canvas.line((x, middle + half), (x, middle + half * (0.3 if rank == 2 else 0.6)), 0.006, look.ink)
    return Drawing("battery gauge", reading, scale=along(place))


def _upright(
    canvas: Canvas,
    scale: Scale,
    place: Callable[[float], Point],
    edge: float,
    side: int,
    ink: Colour,
    look: Look,
    largest: float = 0.05,
) -> None:
    """Draws the ticks and numbers of an upright scale; `side` 1 puts them to the right of `edge`."""
    ticks = scale.ticks()
    gap = 0.65 / max(1, len(ticks) - 1)
    numbered = sum(rank == 2 for _, rank in ticks)
    height = min(largest, 0.65 / max(1, numbered) * 0.9)
    for value, rank in ticks:
        y = place(scale.share(value))[1]
        length = (0.022, 0.03, 0.045)[rank]
        if rank or gap > 1.6 * canvas.pixel:
            canvas.line((edge, y), (edge + side * length, y), min(0.005, gap / 2), ink)
        if rank == 2:
            word = plain(value)
            canvas.text((edge + side * (0.055 + 0.013 * len(word)), y), word, height, ink, bold=look.bold)


def _lying(canvas: Canvas, scale: Scale, place: Callable[[float], Point], ink: Colour, look: Look) -> None:
    for value, rank in scale.ticks():
        x, y = place(scale.share(value))
        canvas.line((x, y), (x, y + (0.03, 0.045, 0.06)[rank]), 0.003, ink)
        if rank == 2:
            canvas.text((x, y + 0.095), plain(value), 0.05, ink, bold=look.bold)


COLUMN = (
    (scales("°C", (-20, 50, 10, 1))[0], scales("°F", (-4, 122, 20, 2))[0]),
    (scales("°C", (0, 100, 10, 2))[0], scales("°F", (32, 212, 20, 4))[0]),
    (scales("°C", (-10, 40, 10, "0.5"))[0], scales("°F", (14, 104, 10, 1))[0]),
    (scales("°C", (35, 42, 1, "0.1"))[0], scales("°F", (95, "107.6", 1, "0.2"))[0]),
)
VOLUMES = scales("mL", (0, 100, 10, 1), (0, 10, 1, "0.2"), (0, 50, 10, 1), (0, 250, 50, 5), (0, 500, 100, 10))
LENGTHS = scales("cm", (0, 10, 1, "0.1"), (0, 15, 1, "0.1"), (0, 8, 1, "0.1")) + scales(
    "in", (0, 4, 1, "0.125"), (0, 6, 1, "0.25")
)
TILTS = scales("mm/m", (-3, 3, 1, "0.5"), (-10, 10, 5, 1)) + scales("°", (-5, 5, 5, 1), (-2, 2, 1, "0.25"))
