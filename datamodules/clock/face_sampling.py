"""Samples clock faces: legible ones, from given ranges.

What is unusual: which choices are legible together is decided here (contrast of hands and dial, room for
numerals inside the ticks, no turned dial without a sign of where twelve is), so that `draw_face` just draws.

One real example::

    spec = sample_face(np.random.default_rng(0), "plain")
    spec.shape, spec.ticks.which                            # ('round', 'hours')
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from datamodules.clock.face_spec import (
    STYLES,
    Colour,
    FaceRanges,
    FaceSpec,
    HandSpec,
    NumeralSpec,
    TickSpec,
)
from datamodules.sources.dice import Dice

_DARK_INKS: tuple[Colour, ...] = ((0, 0, 0), (20, 20, 24), (40, 40, 44))
_LIGHT_INKS: tuple[Colour, ...] = ((255, 255, 255), (240, 240, 235), (225, 225, 230))
_DARK_COLOURS: tuple[Colour, ...] = (
    (120, 10, 10), (10, 50, 120), (0, 70, 40), (70, 30, 100), (90, 50, 10), (0, 70, 80),
)  # fmt: skip
_LIGHT_COLOURS: tuple[Colour, ...] = (
    (255, 225, 60), (255, 180, 120), (150, 230, 255), (170, 240, 150), (255, 190, 210), (230, 200, 130),
)  # fmt: skip
_SIGNALS_ON_LIGHT: tuple[Colour, ...] = ((200, 20, 20), (20, 70, 190), (0, 110, 60), (190, 80, 0))
_SIGNALS_ON_DARK: tuple[Colour, ...] = ((255, 120, 100), (255, 200, 60), (110, 220, 255), (140, 240, 140))


def sample_face(rng: np.random.Generator, style: str = "varied", ranges: FaceRanges | None = None) -> FaceSpec:
    """Samples a face.

    Args:
        rng: Where the randomness comes from; it is advanced.
        style: `plain` or `varied`: which ranges are used where none are given.
        ranges: Own ranges, instead of the style's.

    Returns:
        A legible face: the whole dial lies in the image, hands contrast with the dial, the hour hand is at
        most two thirds as long as the minute hand and no thinner.

    Raises:
        ValueError: The style is unknown.
    """
    if ranges is None:
        if style not in STYLES:
            raise ValueError(f"clock style must be one of {sorted(STYLES)}, got {style!r}")
        ranges = STYLES[style]
    dice = Dice(rng)
    plain = ranges.coloured_share == 0
    dark, coloured = dice.chance(ranges.dark_share), dice.chance(ranges.coloured_share)
    inks = (_LIGHT_INKS if dark else _DARK_INKS) if plain or dice.chance(0.5) else (
        _LIGHT_COLOURS if dark else _DARK_COLOURS
    )  # fmt: skip
    ink = dice.pick(inks)
    numerals = _numerals(dice, ranges, ink, dark)
    ticks = _ticks(dice, ranges, ink, numerals.system)
    depth = ticks.length if ticks.which != "none" else 0.0  # numerals stand just inside the ticks
    numerals = replace(numerals, distance=0.92 - depth - 0.6 * numerals.size)
    hour_hand, minute_hand, second_hand = _hands(dice, ranges, dark)
    shape = dice.pick(ranges.shapes)
    rotation = dice.between(*ranges.rotation)
    mark = numerals.system == "none" and (abs(rotation) > 10 or (not plain and dice.chance(0.2)))
    if numerals.system == "none" and ticks.which == "none":
        rotation, mark = 0.0, False
    rim_width = 0.03 if plain else dice.pick((0.0, 0.02, 0.04, 0.07, 0.11))
    turn = math.radians(rotation)
    # How far the rotated outline reaches from the centre, in dial radii; a square's corners stick out.
    reach = (abs(math.cos(turn)) + abs(math.sin(turn)) if shape == "square" else 1.0) * (1 + rim_width)
    radius = min(dice.between(*ranges.radius), 0.49 / reach)
    slack = min(ranges.shift, 0.5 - radius * reach)
    return FaceSpec(
        shape=shape,
        centre=(0.5 + dice.between(-slack, slack), 0.5 + dice.between(-slack, slack)),
        radius=radius,
        rotation=rotation,
        background=((255, 255, 255),) * 2 if plain else _wall(dice),
        dial=_dial(dice, dark, coloured, plain),
        rim=(30, 30, 30) if plain else dice.pick((*_DARK_INKS, *_DARK_COLOURS, *_LIGHT_COLOURS, (150, 150, 155))),
        rim_width=rim_width,
        mark=mark,
        ticks=ticks,
        numerals=numerals,
        hour_hand=hour_hand,
        minute_hand=minute_hand,
        second_hand=second_hand,
        cap=dice.between(0.03, 0.07),
        blur=dice.between(*ranges.blur) if dice.chance(ranges.blur_share) else 0.0,
    )


def _dial(dice: Dice, dark: bool, coloured: bool, plain: bool) -> Colour:
    low, high = (8, 48) if dark else (250, 255) if plain else (212, 255)
    if coloured:
        return int(dice.between(low, high)), int(dice.between(low, high)), int(dice.between(low, high))
    level = int(dice.between(low, high))
    return level, level, level


def _wall(dice: Dice) -> tuple[Colour, Colour]:
    grey, colour = dice.between(20, 245), dice.between(0, 0.6) if dice.chance(0.5) else 0.0
    base = [grey + colour * (dice.between(20, 245) - grey) for _ in range(3)]
    shade = dice.between(-50, 50) if dice.chance(0.5) else 0.0
    top = int(base[0]), int(base[1]), int(base[2])
    bottom = [min(255, max(0, int(level + shade))) for level in base]
    return top, (bottom[0], bottom[1], bottom[2])


def _numerals(dice: Dice, ranges: FaceRanges, ink: Colour, dark: bool) -> NumeralSpec:
    system = dice.pick(ranges.numerals)
    roman = system == "roman"
    return NumeralSpec(
        system=system,
        which="all" if ranges.coloured_share == 0 or dice.chance(0.75) else "quarters",
        size=dice.between(0.15, 0.2) if roman else dice.between(0.17, 0.26),
        distance=0.0,
        radial=roman and dice.chance(0.7),
        bold=dice.chance(0.4),
        colour=ink if dice.chance(0.7) else dice.pick(_LIGHT_INKS if dark else _DARK_INKS),
    )


def _ticks(dice: Dice, ranges: FaceRanges, ink: Colour, system: str) -> TickSpec:
    which = dice.pick(ranges.ticks)
    return TickSpec(
        which=which,
        shape="line" if ranges.coloured_share == 0 else dice.pick(("line", "line", "dot", "wedge")),
        length=dice.between(0.06, 0.1) if system != "none" else dice.between(0.08, 0.2),
        width=dice.between(0.02, 0.05),
        colour=ink,
        track=ranges.coloured_share > 0 and which != "none" and dice.chance(0.15),
    )


def _hands(dice: Dice, ranges: FaceRanges, dark: bool) -> tuple[HandSpec, HandSpec, HandSpec | None]:
    neutral, colours = (_LIGHT_INKS, _LIGHT_COLOURS) if dark else (_DARK_INKS, _DARK_COLOURS)
    colour = dice.pick(colours if dice.chance(ranges.coloured_share * 0.6) else neutral)
    other = dice.pick(colours) if dice.chance(ranges.coloured_share * 0.3) else colour
    shape = dice.pick(ranges.hands)
    minute_length = dice.between(0.74, 0.9)
    hour_length = minute_length * dice.between(0.52, 0.66)
    minute_width = dice.between(0.03, 0.065)
    hour_width = minute_width * dice.between(1.15, 1.6)
    tail = dice.between(0.05, 0.2) if dice.chance(0.5) else 0.0
    hour_hand = HandSpec(shape, hour_length, hour_width, tail, colour)
    minute_hand = HandSpec(shape, minute_length, minute_width, tail, other)
    if not dice.chance(ranges.second_hand):
        return hour_hand, minute_hand, None
    signal = dice.pick(_SIGNALS_ON_DARK if dark else _SIGNALS_ON_LIGHT) if dice.chance(0.75) else colour
    second_hand = HandSpec("line", dice.between(0.8, 0.92), dice.between(0.012, 0.02), 0.22, signal)
    return hour_hand, minute_hand, second_hand
