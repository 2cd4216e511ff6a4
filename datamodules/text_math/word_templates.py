"""Templates of word problems; each draws its numbers, tells its story and computes its own steps.

One real example, `step("48 / 2", 24)` is "48 / 2 = <<48/2=24>>24", as GSM8K writes a calculation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NAMES = ("Mia", "Noah", "Lena", "Omar", "Aiko", "Carlos", "Zoe", "Ivan", "Priya", "Tom", "Nia", "Felix")
THINGS = ("books", "pens", "apples", "stickers", "marbles", "cards", "cookies", "stamps", "shells", "tickets")


class Draw:
    """Chooses what a template needs, and remembers the numbers.

    Args:
        rng: Randomness of the sample.
        largest: Largest number drawn.
    """

    def __init__(self, rng: np.random.Generator, largest: int) -> None:
        self._rng = rng
        self._largest = largest
        self.numbers: list[int] = []
        order = rng.permutation(len(NAMES))
        self.name, self.friend = NAMES[order[0]], NAMES[order[1]]
        self.things, self.others = (THINGS[place] for place in rng.permutation(len(THINGS))[:2])

    def number(self, least: int = 2, most: int | None = None) -> int:
        """Returns a number from `least` to `most` (the setting `largest` if None)."""
        most = max(self._largest if most is None else most, least)
        self.numbers.append(int(self._rng.integers(least, most + 1)))
        return self.numbers[-1]

    def one_of(self, numbers: Sequence[int]) -> int:
        """Returns one of `numbers`."""
        return numbers[self.number(0, len(numbers) - 1)]


Story = tuple[str, list[str], int]
"""Question, one line per step, result."""


def step(expression: str, value: int) -> str:
    """Returns a calculation with its calculator mark, `48 / 2 = <<48/2=24>>24`."""
    return f"{expression} = <<{expression.replace(' ', '')}={value}>>{value}"


def halves(d: Draw) -> Story:
    """Half as many, then both."""
    sold = 2 * d.number()
    half, total = sold // 2, sold + sold // 2
    return (
        f"{d.name} sold {sold} {d.things} in April, and half as many in May. "
        f"How many {d.things} did {d.name} sell in both months?",
        [
            f"{d.name} sold {step(f'{sold} / 2', half)} {d.things} in May.",
            f"{d.name} sold {step(f'{sold} + {half}', total)} {d.things} in both months.",
        ],
        total,
    )


def shopping(d: Draw) -> Story:
    """Two things at their prices."""
    count, price, count2, price2 = (d.number() for _ in range(4))
    cost, cost2 = count * price, count2 * price2
    return (
        f"{d.name} buys {count} {d.things} for ${price} each and {count2} {d.others} for ${price2} each. "
        f"How many dollars does {d.name} pay?",
        [
            f"The {d.things} cost ${step(f'{count} * {price}', cost)}.",
            f"The {d.others} cost ${step(f'{count2} * {price2}', cost2)}.",
            f"Together that is ${step(f'{cost} + {cost2}', cost + cost2)}.",
        ],
        cost + cost2,
    )


def change(d: Draw) -> Story:
    """What is left of the money."""
    count, price, left = d.number(), d.number(), d.number(1)
    cost = count * price
    return (
        f"{d.name} has ${cost + left} and buys {count} {d.things} for ${price} each. "
        f"How many dollars does {d.name} have left?",
        [
            f"The {d.things} cost ${step(f'{count} * {price}', cost)}.",
            f"That leaves ${step(f'{cost + left} - {cost}', left)}.",
        ],
        left,
    )


def sharing(d: Draw) -> Story:
    """Equal shares, some given away."""
    friends, share = d.number(2, 12), d.number(3)
    gift = d.number(1, share - 1)
    total = friends * share
    return (
        f"{friends} friends share {total} {d.things} equally. {d.name}, one of them, then gives {gift} to {d.friend}. "
        f"How many {d.things} does {d.name} keep?",
        [
            f"Each gets {step(f'{total} / {friends}', share)} {d.things}.",
            f"{d.name} keeps {step(f'{share} - {gift}', share - gift)} {d.things}.",
        ],
        share - gift,
    )


def travel(d: Draw) -> Story:
    """Two legs at two speeds."""
    hours, hours2 = d.number(1, 9), d.number(1, 9)
    speed, speed2 = d.number(10, 90), d.number(10, 90)
    way, way2 = hours * speed, hours2 * speed2
    return (
        f"{d.name} drives {hours} hours at {speed} km per hour and then {hours2} hours at {speed2} km per hour. "
        f"How many kilometres does {d.name} drive?",
        [
            f"The first part is {step(f'{speed} * {hours}', way)} km.",
            f"The second part is {step(f'{speed2} * {hours2}', way2)} km.",
            f"In all that is {step(f'{way} + {way2}', way + way2)} km.",
        ],
        way + way2,
    )


def discount(d: Draw) -> Story:
    """A percentage off a price."""
    price, percent = 20 * d.number(1), d.one_of((5, 10, 15, 20, 25, 30, 40, 50))
    saved = price * percent // 100
    return (
        f"A bag of {d.things} costs ${price}. Today it is {percent}% off. How many dollars does {d.name} pay for it?",
        [
            f"The discount is ${step(f'{price} * {percent} / 100', saved)}.",
            f"{d.name} pays ${step(f'{price} - {saved}', price - saved)}.",
        ],
        price - saved,
    )


def tiles(d: Draw) -> Story:
    """Area of a rectangle and its cost."""
    width, length, price = d.number(), d.number(), d.number(2, 12)
    area = width * length
    return (
        f"A floor is {width} metres wide and {length} metres long. A square metre of tiles costs ${price}. "
        "How many dollars do the tiles cost?",
        [
            f"The floor has {step(f'{width} * {length}', area)} square metres.",
            f"The tiles cost ${step(f'{area} * {price}', area * price)}.",
        ],
        area * price,
    )


def average(d: Draw) -> Story:
    """Mean of three days."""
    mean = d.number(4)
    first, second = d.number(1, mean), d.number(1, mean)
    third = 3 * mean - first - second
    return (
        f"{d.name} collects {first} {d.things} on Monday, {second} on Tuesday and {third} on Wednesday. "
        f"How many {d.things} is that on average per day?",
        [
            f"In three days that is {step(f'{first} + {second} + {third}', 3 * mean)} {d.things}.",
            f"The average is {step(f'{3 * mean} / 3', mean)} {d.things}.",
        ],
        mean,
    )


def ages(d: Draw) -> Story:
    """Times as old, some years later."""
    young, times, years = d.number(3), d.number(2, 5), d.number(1, 15)
    old = young * times
    return (
        f"{d.friend} is {young} years old. {d.name} is {times} times as old. "
        f"How old will {d.name} be in {years} years?",
        [
            f"{d.name} is {step(f'{young} * {times}', old)} years old now.",
            f"In {years} years {d.name} will be {step(f'{old} + {years}', old + years)}.",
        ],
        old + years,
    )


def boxes(d: Draw) -> Story:
    """Boxes, some broken."""
    count, each = d.number(), d.number()
    broken = d.number(1, count * each - 1)
    total = count * each
    return (
        f"{d.name} has {count} boxes with {each} {d.things} each. {broken} of the {d.things} are broken. "
        "How many are whole?",
        [
            f"There are {step(f'{count} * {each}', total)} {d.things}.",
            f"{step(f'{total} - {broken}', total - broken)} of them are whole.",
        ],
        total - broken,
    )


TEMPLATES: dict[str, Callable[[Draw], Story]] = {
    template.__name__: template
    for template in (halves, shopping, change, sharing, travel, discount, tiles, average, ages, boxes)
}
