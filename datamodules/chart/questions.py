"""Questions about a table with exact answers.

What is unusual: answers are computed with `Decimal` from the numbers behind the chart, and whatever is rounded
says so in the question (halves away from zero, as people do).

One real example: "What is the ratio of the revenue in 2015 to the revenue in 2012, rounded to two decimals?" with
the answer "1.38" and the kind "ratio".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from datamodules.chart.data import ChartTable, Series
from datamodules.chart.surround import number_text
from datamodules.sources.dice import Dice

QUESTION_KINDS = ("lookup", "difference", "sum", "ratio", "maximum", "minimum", "average", "count")
_PLURALS = {
    "Country": "countries", "City": "cities", "Month": "months", "Year": "years", "Fruit": "fruits",
    "Sport": "sports", "Age group": "age groups", "Department": "departments", "Company": "companies",
}  # fmt: skip
_DECIMALS = {1: "one decimal", 2: "two decimals"}


@dataclass(frozen=True)
class Question:
    """A question, its exact answer as text, and its kind (one of `QUESTION_KINDS`)."""

    text: str
    answer: str
    kind: str


def ask(table: ChartTable, rng: np.random.Generator, kinds: Sequence[str] = QUESTION_KINDS) -> Question:
    """Asks about a table.

    Args:
        table: What the chart shows.
        rng: Where the randomness comes from; it is advanced.
        kinds: Kinds to choose among.

    Returns:
        A question that the chart alone answers, with its answer.

    Raises:
        ValueError: A kind is unknown, or there is none.
    """
    if not kinds or set(kinds) - set(QUESTION_KINDS):
        raise ValueError(f"question kinds must be some of {QUESTION_KINDS}, got {tuple(kinds)!r}")
    dice = Dice(rng)
    kind = dice.pick(kinds)
    text, answer = _ASKED[kind](table, dice)
    return Question(text, number_text(answer), kind)


def rounded(value: Decimal, decimals: int) -> Decimal:
    """Rounds halves away from zero.

    >>> rounded(Decimal("0.125"), 2), rounded(Decimal("2.5"), 0)
    (Decimal('0.13'), Decimal('3'))
    """
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def _subject(table: ChartTable, series: Series) -> str:
    return f"the {table.measure}" if len(table.series) == 1 else f"the {table.measure} of {series.name}"


def _cell(table: ChartTable, series: Series, place: int) -> str:
    return f"{_subject(table, series)} {table.preposition} {table.categories[place]}"


def _plural(table: ChartTable) -> str:
    return _PLURALS.get(table.axis, "points")


def _two_cells(table: ChartTable, dice: Dice) -> tuple[str, Decimal, str, Decimal]:
    """Two different cells with their names: two categories of a series, or two series at a category."""
    if len(table.series) > 1 and dice.chance(0.4):
        place = dice.whole(0, len(table.categories) - 1)
        first, second = dice.shuffled(table.series)[:2]
        return (
            _cell(table, first, place), first.values[place], _cell(table, second, place), second.values[place],
        )  # fmt: skip
    series = dice.pick(table.series)
    one, other = dice.shuffled(range(len(table.categories)))[:2]
    return _cell(table, series, one), series.values[one], _cell(table, series, other), series.values[other]


def _lookup(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    series, place = dice.pick(table.series), dice.whole(0, len(table.categories) - 1)
    cell = _cell(table, series, place)
    return dice.pick((f"What is {cell}?", f"How high is {cell}?", f"Give {cell}.")), series.values[place]


def _difference(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    name, value, other_name, other = _two_cells(table, dice)
    text = dice.pick(("What is the absolute difference between {} and {}?", "How far apart are {} and {}?"))
    return text.format(name, other_name), abs(value - other)


def _sum(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    if dice.chance(0.4):
        series = dice.pick(table.series)
        total = sum(series.values, Decimal(0))
        return f"What is {_subject(table, series)} added up over all {_plural(table)}?", total
    name, value, other_name, other = _two_cells(table, dice)
    return f"What is the sum of {name} and {other_name}?", value + other


def _ratio(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    name, value, other_name, other = _two_cells(table, dice)
    return f"What is the ratio of {name} to {other_name}, rounded to two decimals?", rounded(value / other, 2)


def _maximum(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    series = dice.pick(table.series)
    word = dice.pick(("highest", "largest", "maximum"))
    return f"What is the {word} value of {_subject(table, series)}?", max(series.values)


def _minimum(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    series = dice.pick(table.series)
    word = dice.pick(("lowest", "smallest", "minimum"))
    return f"What is the {word} value of {_subject(table, series)}?", min(series.values)


def _average(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    series = dice.pick(table.series)
    decimals = 1 if all(value == int(value) for value in series.values) else 2
    mean = rounded(sum(series.values, Decimal(0)) / len(series.values), decimals)
    return (
        f"What is the average of {_subject(table, series)} over all {_plural(table)}, rounded to {_DECIMALS[decimals]}?"
    ), mean


def _count(table: ChartTable, dice: Dice) -> tuple[str, Decimal]:
    series = dice.pick(table.series)
    bar, above = _threshold(series.values, dice), dice.chance(0.5)
    unit = "%" if table.unit == "%" else f" {table.unit}" if table.unit else ""
    text = (
        f"For how many {_plural(table)} is {_subject(table, series)} {'above' if above else 'below'} "
        f"{number_text(bar)}{unit}?"
    )
    return text, Decimal(sum(value > bar if above else value < bar for value in series.values))


def _threshold(values: Sequence[Decimal], dice: Dice) -> Decimal:
    """A number in the middle of one of the wider gaps between values, so that the chart decides every case."""
    levels = sorted(set(values) if len(set(values)) > 1 else {Decimal(0), *values})
    gaps = sorted(itertools.pairwise(levels), key=lambda gap: gap[0] - gap[1])
    low, high = dice.pick(gaps[: max(1, len(gaps) // 2)])
    return (low + high) / 2


_ASKED: dict[str, Callable[[ChartTable, Dice], tuple[str, Decimal]]] = {
    "lookup": _lookup,
    "difference": _difference,
    "sum": _sum,
    "ratio": _ratio,
    "maximum": _maximum,
    "minimum": _minimum,
    "average": _average,
    "count": _count,
}
