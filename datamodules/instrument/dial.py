"""Instruments with a needle on a round scale.

A dial's scale begins at `start` degrees clockwise from twelve and runs clockwise over `sweep` degrees. Two scales share
one needle: the outer one is the instrument's own, the inner one is in another unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from datamodules.instrument.canvas import Canvas, Colour, Point, mix, toward
from datamodules.instrument.dial_scales import (
    AMPERES,
    BAR_AND_PSI,
    CELSIUS_AND_FAHRENHEIT,
    PLAIN,
    PRESSURES,
    SPEEDS,
    VOLTS,
    WEIGHTS,
)
from datamodules.instrument.look import Look
from datamodules.instrument.picture import Drawing, along
from datamodules.instrument.scale_reading import Scale, plain, scales
from datamodules.sources.dice import Dice

ZONES: tuple[Colour, ...] = ((40, 160, 70), (235, 190, 40), (215, 40, 40))


@dataclass(frozen=True)
class Dial:
    """Where a round scale lies.

    Attributes:
        centre: Axle of the needle.
        radius: Outer edge of the scale, in sides.
        start: Angle of the first tick.
        sweep: Angle from the first to the last tick, clockwise.
    """

    centre: Point
    radius: float
    start: float
    sweep: float

    def angle(self, share: float) -> float:
        """Returns the angle of a share of the scale."""
        return self.start + self.sweep * share

    def place(self, share: float, radius: float = 1.0) -> Point:
        """Returns the place at a share of the scale and of the radius."""
        return toward(self.centre, self.angle(share), self.radius * radius)


def pressure_gauge(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A pressure gauge, with an inner scale now and then."""
    if not look.varied:
        return _gauge(canvas, dice, look, "pressure gauge", dice.pick(PLAIN), start=-135, sweep=270)
    second = dice.pick(BAR_AND_PSI) if dice.chance(0.25) else None
    scale = second[0] if second else dice.pick(PRESSURES)
    inner = second[1] if second else None
    sweep = dice.pick((270, 270, 240, 300, 180))
    zones = dice.chance(0.35)
    return _gauge(canvas, dice, look, "pressure gauge", scale, -sweep / 2, sweep, inner=inner, zones=zones)


def dial_thermometer(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A bimetal thermometer, in degrees Celsius, Fahrenheit or both."""
    celsius, fahrenheit = dice.pick(CELSIUS_AND_FAHRENHEIT)
    if dice.chance(0.3):
        scale, inner = celsius, fahrenheit
    else:
        scale, inner = dice.pick((celsius, fahrenheit)), None
    sweep = dice.pick((270, 300, 240))
    return _gauge(canvas, dice, look, "thermometer", scale, -sweep / 2, sweep, inner=inner)


def speedometer(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A car's speedometer."""
    sweep = dice.pick((240, 260, 270))
    return _gauge(canvas, dice, look, "speedometer", dice.pick(SPEEDS), -sweep / 2, sweep)


def panel_meter(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A voltmeter or ammeter: a rectangular window, the axle below the scale."""
    scale = dice.pick(VOLTS + AMPERES)
    sweep = dice.pick((80, 90, 100))
    width, height = dice.between(0.78, 0.9), dice.between(0.6, 0.72)
    left, top = 0.5 - width / 2, 0.5 - height / 2
    canvas.box(left - 0.03, top - 0.03, left + width + 0.03, top + height + 0.1, look.case, corner=0.02)
    canvas.box(left, top, left + width, top + height, look.face, corner=0.01)
    radius = min(height * 0.74, 0.37 * width / math.sin(math.radians(sweep / 2)))
    dial = Dial((0.5, top + height * 0.95), radius, -sweep / 2, sweep)
    _scale(canvas, dial, scale, look.ink, look, labels_inside=False)
    canvas.text((left + width * 0.12, top + height * 0.85), scale.unit, height * 0.16, look.ink, bold=True)
    reading = scale.reading(dice)
    _needle(canvas, dice, dial, scale.share(reading.value), look, tail=0.0, length=0.95)
    name = "voltmeter" if scale.unit.endswith("V") else "ammeter"
    return Drawing(name, reading, scale=along(dial.place), pivot=dial.centre)


def weighing_scale(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A kitchen or hanging scale: a full turn, zero at the top."""
    scale = dice.pick(WEIGHTS)
    return _gauge(canvas, dice, look, "scale", scale, 0.0, 360.0, margin=0.01)


def fuel_gauge(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A fuel gauge from E to F, read in percent."""
    scale = scales("%", (0, 100, 50, dice.pick(("12.5", "25"))))[0]
    sweep = dice.pick((90, 100, 120))
    radius = dice.between(0.4, 0.44)
    centre = (0.5, 0.5 + dice.between(0.0, 0.05))
    canvas.disc(centre, radius * 1.1, look.case)
    canvas.disc(centre, radius * 1.03, look.face)
    dial = Dial((0.5, centre[1] + radius * 0.35), radius * 1.05, -sweep / 2, sweep)
    if dice.chance(0.6):
        canvas.arc(dial.centre, dial.radius, dial.start, sweep * 0.12, 0.02, ZONES[2])
    _ticks(canvas, dial, scale, look.ink, 1.0)
    for share, word in ((0.0, "E"), (0.5, "1/2"), (1.0, "F")):
        canvas.text(dial.place(share, 0.72), word, radius * 0.2, look.ink, bold=True)
    reading = scale.reading(dice, parts=5)
    _needle(canvas, dice, dial, scale.share(reading.value), look, tail=0.1, length=0.9)
    return Drawing("fuel gauge", reading, scale=along(dial.place), pivot=dial.centre)


def _gauge(
    canvas: Canvas,
    dice: Dice,
    look: Look,
    name: str,
    scale: Scale,
    start: float,
    sweep: float,
    inner: Scale | None = None,
    zones: bool = False,
    margin: float = 0.0,
) -> Drawing:
    radius = dice.between(0.33, 0.44) if look.varied else dice.between(0.42, 0.45)
    slack = 0.47 - radius * 1.07
    centre = (0.5 + dice.between(-slack, slack), 0.5 + dice.between(-slack, slack)) if slack > 0 else (0.5, 0.5)
    rim = dice.pick((0.03, 0.05, 0.07)) if look.varied else 0.04
    if look.varied and dice.chance(0.15):
        reach = radius * (1 + rim)
        canvas.box(centre[0] - reach, centre[1] - reach, centre[0] + reach, centre[1] + reach, look.case, corner=0.03)
    else:
        canvas.disc(centre, radius * (1 + rim), look.case)
    canvas.disc(centre, radius, look.face)
    dial = Dial(centre, radius * 0.94, start, sweep)
    if zones:
        low, high = dice.between(0.4, 0.65), dice.between(0.7, 0.9)
        for begin, end, colour in ((0.0, low, ZONES[0]), (low, high, ZONES[1]), (high, 1.0, ZONES[2])):
            canvas.arc(centre, dial.radius, dial.angle(begin), sweep * (end - begin), radius * 0.06, colour)
    _scale(canvas, dial, scale, look.ink, look)
    chosen, asked = scale, False
    if inner is not None:
        ring = Dial(centre, dial.radius * 0.6, start, sweep)
        _ticks(canvas, ring, inner, look.faint, 0.7)
        _labels(canvas, ring, inner, look.faint, look, 0.75, 0.16)
        canvas.arc(centre, ring.radius, start, sweep, canvas.pixel, look.faint)
        chosen, asked = dice.pick((scale, inner)), True
    _print_units(canvas, dice, dial, scale, inner, look)
    reading = chosen.reading(dice, margin=margin)
    share = chosen.share(reading.value)
    _needle(canvas, dice, dial, share, look, tail=dice.between(0.05, 0.25))
    return Drawing(name, reading, ask_unit=asked, scale=along(dial.place), pivot=centre)


def _print_units(canvas: Canvas, dice: Dice, dial: Dial, scale: Scale, inner: Scale | None, look: Look) -> None:
    below = dial.sweep < 330
    place = (dial.centre[0], dial.centre[1] + dial.radius * (0.62 if below else 0.42))
    if inner is None:
        canvas.text(place, scale.unit, dial.radius * 0.2, look.ink, bold=look.bold)
        return
    height = dial.radius * 0.15
    canvas.text((place[0], place[1] + height * 0.55), scale.unit, height, look.ink, bold=look.bold)
    canvas.text((place[0], place[1] - height * 0.55), inner.unit, height, look.faint)


def _scale(canvas: Canvas, dial: Dial, scale: Scale, ink: Colour, look: Look, labels_inside: bool = True) -> None:
    _ticks(canvas, dial, scale, ink, 1.0)
    if labels_inside:
        _labels(canvas, dial, scale, ink, look, 0.74, 0.22)
    else:
        _labels(canvas, dial, scale, ink, look, 1.1, 0.16)
        canvas.arc(dial.centre, dial.radius, dial.start, dial.sweep, canvas.pixel, ink)


def _ticks(canvas: Canvas, dial: Dial, scale: Scale, ink: Colour, strength: float) -> None:
    closed = dial.sweep >= 360
    ticks = scale.ticks()
    room = dial.radius * 3.1416 * dial.sweep / 180 / max(1, len(ticks) - 1)
    for value, rank in ticks[:-1] if closed else ticks:
        if rank == 0 and room < 1.6 * canvas.pixel:
            continue  # they would run together
        share = scale.share(value)
        length = (0.07, 0.1, 0.13)[rank] * strength
        width = (0.008, 0.012, 0.022)[rank] * dial.radius / 0.42
        canvas.line(dial.place(share), dial.place(share, 1 - length), min(width, room * 0.5), ink)


def _labels(canvas: Canvas, dial: Dial, scale: Scale, ink: Colour, look: Look, distance: float, largest: float) -> None:
    """Writes the numbers that have room: all, or every second one."""
    numbered = [value for value, rank in scale.ticks() if rank == 2]
    if dial.sweep >= 360:
        numbered = numbered[:-1]
    longest = max(len(plain(value)) for value in numbered)
    gap = dial.radius * distance * 3.1416 * dial.sweep / 180 / max(1, len(numbered) - 1)
    height = min(largest * dial.radius, gap / (0.5 * longest + 0.3))
    every = 1
    if height < 8 * canvas.pixel and len(numbered) > 4 and (len(numbered) - 1) % 2 == 0:
        every, height = 2, min(largest * dial.radius, 2 * gap / (0.5 * longest + 0.3))
    for value in numbered[::every]:
        canvas.text(dial.place(scale.share(value), distance), plain(value), height, ink, bold=look.bold)


def _needle(
    canvas: Canvas, dice: Dice, dial: Dial, share: float, look: Look, tail: float, length: float | None = None
) -> None:
    reach = length or dice.between(0.8, 0.94)
    width = dial.radius * (dice.between(0.03, 0.07) if look.varied else 0.05)
    shape = dice.pick(("line", "tapered", "tapered")) if look.varied else "tapered"
    back = toward(dial.centre, dial.angle(share) + 180, dial.radius * tail)
    tip = None if shape == "line" else 0.2 * width
    if look.varied and dice.chance(0.3):  # its shadow
        shift = dial.radius * 0.025
        shadow = mix(look.face, (0, 0, 0), 0.25)
        end = dial.place(share, reach)
        canvas.line((back[0] + shift, back[1] + shift), (end[0] + shift, end[1] + shift), width, shadow, tip)
    canvas.line(back, dial.place(share, reach), width, look.signal, tip)
    canvas.disc(dial.centre, dial.radius * dice.between(0.05, 0.1), dice.pick((look.signal, look.case, look.ink)))
