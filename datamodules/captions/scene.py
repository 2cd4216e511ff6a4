"""Scenes of coloured shapes, numbers and words on a grid of three by three places, and what can be asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from datamodules.sources.dice import Dice
from datamodules.sources.glyphs import glyphs

COLOURS = {
    "red": (214, 39, 40), "green": (44, 140, 44), "blue": (31, 90, 200), "yellow": (240, 200, 20),
    "orange": (255, 127, 14), "purple": (128, 60, 160), "black": (20, 20, 20), "grey": (128, 128, 128),
}  # fmt: skip
BACKGROUNDS = ((255, 255, 255), (248, 244, 232), (226, 238, 246), (236, 246, 230))
SHAPES = ("circle", "square", "triangle", "star", "cross")
PLACES = (
    "top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right",
)  # fmt: skip
WORDS = (
    "time", "clock", "bar", "gas", "open", "stop", "left", "water", "red", "hour", "min", "max", "north", "south",
    "salt",
    "tea", "oil", "fire", "exit", "push", "pull", "hot", "cold", "sun", "moon", "speed", "load", "test", "data", "year",
)  # fmt: skip
STAR_POINTS = (
    (0, -1), (0.22, -0.31), (0.95, -0.31), (0.36, 0.12), (0.59, 0.81), (0, 0.38), (-0.59, 0.81), (-0.36, 0.12),
    (-0.95, -0.31), (-0.22, -0.31),
)  # fmt: skip
OVERSAMPLING = 2


@dataclass(frozen=True)
class Thing:
    """One thing in a scene.

    Attributes:
        what: A shape, a word, or a number as text.
        colour: Key of `COLOURS`.
        place: Number of its place in `PLACES`.
    """

    what: str
    colour: str
    place: int


@dataclass(frozen=True)
class Scene:
    """A picture's content with one question about it.

    Attributes:
        things: What is drawn, each in a place of its own.
        question: The question.
        answer: Its answer.
        kind: Which kind of question it is.
    """

    things: tuple[Thing, ...]
    question: str
    answer: str
    kind: str


def sample_scene(dice: Dice, kinds: Sequence[str]) -> Scene:
    """Draws a scene and a question that it answers.

    Args:
        dice: Randomness.
        kinds: Keys of `KINDS`, equally likely.
    """
    kind = dice.pick(tuple(kinds))
    things, question, answer = KINDS[kind](dice)
    return Scene(tuple(things), question, answer, kind)


def draw_scene(scene: Scene, size: int, dice: Dice) -> Image.Image:
    """Draws a scene.

    Args:
        scene: What to draw.
        size: Edge of the square picture in pixels.
        dice: Randomness of background, sizes and shifts.
    """
    edge = size * OVERSAMPLING
    image = Image.new("RGB", (edge, edge), dice.pick(BACKGROUNDS))
    draw = ImageDraw.Draw(image)
    for thing in scene.things:
        cell = edge / 3
        x = (thing.place % 3 + dice.between(0.45, 0.55)) * cell
        y = (thing.place // 3 + dice.between(0.45, 0.55)) * cell
        radius, fill = cell * dice.between(0.28, 0.4), COLOURS[thing.colour]
        if thing.what in SHAPES:
            _draw_shape(draw, thing.what, x, y, radius, fill)
        else:
            largest = 0.95 * cell
            mask = glyphs(thing.what, max(4, int(1.4 * radius)), dice.chance(0.3))
            if mask.width > largest:
                mask = mask.resize((int(largest), max(1, int(mask.height * largest / mask.width))))
            image.paste(fill, (int(x - mask.width / 2), int(y - mask.height / 2)), mask)
    return image.resize((size, size), Image.Resampling.BOX)


def _draw_shape(
    draw: ImageDraw.ImageDraw, shape: str, x: float, y: float, radius: float, fill: tuple[int, ...]
) -> None:
    if shape == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    elif shape == "square":
        half = 0.85 * radius
        draw.rectangle((x - half, y - half, x + half, y + half), fill=fill)
    elif shape == "cross":
        arm = 0.3 * radius
        draw.rectangle((x - radius, y - arm, x + radius, y + arm), fill=fill)
        draw.rectangle((x - arm, y - radius, x + arm, y + radius), fill=fill)
    else:
        corners = STAR_POINTS if shape == "star" else ((0, -1), (0.95, 0.75), (-0.95, 0.75))
        draw.polygon([(x + radius * right, y + radius * down) for right, down in corners], fill=fill)


Question = tuple[list[Thing], str, str]


def _colour(dice: Dice) -> Question:
    things = _different(dice, dice.whole(1, 3))
    asked = things[0]
    return things, f"What colour is the {asked.what}?", asked.colour


def _count(dice: Dice) -> Question:
    counted, other = dice.shuffled(SHAPES)[:2]
    places = dice.shuffled(range(9))
    many, others = dice.whole(1, 7), dice.whole(0, 2)
    what = [counted] * many + [other] * others
    things = [Thing(shape, _pick_colour(dice), place) for shape, place in zip(what, places, strict=False)]
    plural = {"cross": "crosses"}.get(counted, f"{counted}s")
    return things, f"How many {plural} are there?", str(many)


def _where(dice: Dice) -> Question:
    things = _different(dice, dice.whole(1, 3))
    return things, f"Where is the {things[0].what}?", PLACES[things[0].place]


def _number(dice: Dice) -> Question:
    number = str(dice.whole(0, 10 ** dice.whole(1, 3) - 1))
    return _written(dice, number), "Which number is shown?", number


def _word(dice: Dice) -> Question:
    word = dice.pick(WORDS)
    return _written(dice, word), "Which word is shown?", word


def _written(dice: Dice, text: str) -> list[Thing]:
    """A text and up to two shapes."""
    things = _different(dice, 1 + dice.whole(0, 2))
    return [Thing(text, things[0].colour, things[0].place), *things[1:]]


def _different(dice: Dice, many: int) -> list[Thing]:
    """Different shapes in different places."""
    shapes, places = dice.shuffled(SHAPES), dice.shuffled(range(9))
    return [Thing(shape, _pick_colour(dice), place) for shape, place in zip(shapes[:many], places, strict=False)]


def _pick_colour(dice: Dice) -> str:
    return dice.pick(tuple(COLOURS))


KINDS = {"colour": _colour, "count": _count, "where": _where, "number": _number, "word": _word}
"""What can be asked: what colour, how many, where, which number, which word."""
