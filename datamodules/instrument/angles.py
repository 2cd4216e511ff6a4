"""Instruments that show directions: compass and protractor."""

from __future__ import annotations

from decimal import Decimal

from datamodules.instrument.canvas import Canvas, toward
from datamodules.instrument.look import Look
from datamodules.instrument.picture import Drawing, along
from datamodules.instrument.scale_reading import ScaleReading
from datamodules.sources.dice import Dice


def compass(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A compass whose rose lies still and whose needle gives the heading, clockwise from north."""
    centre = (0.5, 0.5)
    radius = dice.between(0.38, 0.44)
    canvas.disc(centre, radius * 1.08, look.case)
    canvas.disc(centre, radius, look.face)
    step = dice.pick((5, 10))
    for degrees in range(0, 360, step):
        length = 0.12 if degrees % 30 == 0 else 0.06
        start, end = toward(centre, degrees, radius * 0.97), toward(centre, degrees, radius * (0.97 - length))
        canvas.line(start, end, 0.009 if degrees % 30 == 0 else 0.005, look.ink)
    for degrees, word in ((0, "N"), (90, "E"), (180, "S"), (270, "W")):
        canvas.text(toward(centre, degrees, radius * 0.62), word, radius * 0.26, look.ink, bold=True)
    for degrees in range(0, 360, 30):
        if degrees % 90:
            canvas.text(toward(centre, degrees, radius * 0.74), str(degrees), radius * 0.14, look.ink)
    heading = dice.whole(0, 359)
    tip, back = toward(centre, heading, radius * 0.82), toward(centre, heading + 180, radius * 0.5)
    canvas.line(centre, back, radius * 0.09, look.faint, tip=0.0)
    canvas.line(centre, tip, radius * 0.09, look.signal, tip=0.0)
    canvas.disc(centre, radius * 0.06, look.ink)
    reading = ScaleReading(Decimal(heading), "°", Decimal(step), Decimal(0), Decimal(360), period=Decimal(360))
    return Drawing("compass", reading, scale=along(lambda s: toward(centre, 360 * s, radius * 0.97)), pivot=centre)


def protractor(canvas: Canvas, dice: Dice, look: Look) -> Drawing:
    """A protractor over an angle: one arm along the base line, the other at the angle asked."""
    centre, radius = (0.5, dice.between(0.68, 0.78)), dice.between(0.38, 0.44)
    canvas.disc(centre, radius, look.face)
    # The lower half is cut off; what was behind it is the wall.
    canvas.box(centre[0] - radius - 0.01, centre[1] + 0.03, centre[0] + radius + 0.01, 1.01, look.wall)
    canvas.box(centre[0] - radius, centre[1], centre[0] + radius, centre[1] + 0.03, look.face)
    minor = dice.pick((1, 2, 5))
    for degrees in range(0, 181, minor):
        rank = 2 if degrees % 10 == 0 else 1 if degrees % 5 == 0 else 0
        outer, inner = toward(centre, 90 - degrees, radius * 0.985), radius * (0.985 - (0.04, 0.06, 0.09)[rank])
        canvas.line(outer, toward(centre, 90 - degrees, inner), (0.003, 0.004, 0.006)[rank], look.ink)
        if degrees % 20 == 0:
            place = toward(centre, 90 - degrees, radius * 0.8)
            canvas.text(place, str(degrees), radius * 0.11, look.ink, turn=90 - degrees, bold=look.bold)
    angle = dice.whole(5, 175)
    for degrees in (0, angle):
        canvas.line(centre, toward(centre, 90 - degrees, radius * 1.12), 0.009, look.signal)
    canvas.disc(centre, 0.014, look.signal)
    reading = ScaleReading(Decimal(angle), "°", Decimal(minor), Decimal(0), Decimal(180))
    return Drawing("protractor", reading, scale=along(lambda s: toward(centre, 90 - 180 * s, radius)), pivot=centre)
