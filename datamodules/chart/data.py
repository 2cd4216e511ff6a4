"""The numbers behind a chart, sampled at random.

What is unusual: values are `Decimal`s on a grid. Where a chart prints no values, the grid is so coarse (at
most fifty steps up to the top of the axis) that the exact value can be read off the axis; where it prints
them, it is finer.

One real example::

    table = sample_table(np.random.default_rng(0), "line")
    table.title, table.categories[0], table.series[0].values[0]   # ('Rainfall by year', '2008', Decimal(62))
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from datamodules.sources.dice import Dice

CHART_KINDS = ("vertical_bar", "horizontal_bar", "grouped_bar", "stacked_bar", "line", "pie", "scatter")


@dataclass(frozen=True)
class Series:
    """One column of numbers: its name and a value for each category."""

    name: str
    values: tuple[Decimal, ...]


@dataclass(frozen=True)
class ChartTable:
    """What a chart shows.

    Attributes:
        title: Heading.
        measure: What the numbers are, lower case ("exports").
        unit: Unit of the numbers, "" for none.
        axis: What the categories are ("Country").
        preposition: Word before a category in a sentence ("in" 2019, "for" Kenya).
        categories: Names along the axis; numbers as text in a scatter chart.
        series: One or more columns of numbers.
    """

    title: str
    measure: str
    unit: str
    axis: str
    preposition: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]

    def __post_init__(self) -> None:
        if not self.categories or not self.series:
            raise ValueError(f"chart table {self.title!r} needs at least one category and one series")
        for series in self.series:
            if len(series.values) != len(self.categories):
                raise ValueError(
                    f"chart table {self.title!r}: series {series.name!r} has {len(series.values)} values "
                    f"for {len(self.categories)} categories"
                )


@dataclass(frozen=True)
class _Topic:
    """What is measured, and what it may be split by.

    Attributes:
        measure: Singular noun.
        parts: What shares are of; "" where parts do not add up to a whole.
        unit: Unit of the measure.
        exponents: Decimal exponents of the axis' top (1 for 10 to 50).
        axes: Categories that make sense, besides years and months.
        series: Keys of `_SERIES` that make sense.
    """

    measure: str
    parts: str
    unit: str
    exponents: tuple[int, ...]
    axes: tuple[str, ...]
    series: tuple[str, ...]


_NAMES: dict[str, tuple[str, ...]] = {
    "Country": (
        "Brazil", "Canada", "Chile", "Egypt", "Finland", "France", "Ghana", "India", "Italy", "Japan",
        "Kenya", "Mexico", "Norway", "Peru", "Poland", "Spain", "Sweden", "Turkey", "Vietnam",
    ),
    "City": ("Austin", "Bergen", "Cairo", "Delhi", "Hanoi", "Lima", "Lyon", "Milan", "Oslo", "Porto"),
    "Month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "Fruit": ("Apples", "Bananas", "Cherries", "Grapes", "Lemons", "Mangoes", "Oranges", "Pears", "Plums"),
    "Sport": ("Boxing", "Cycling", "Fencing", "Golf", "Hockey", "Judo", "Rowing", "Rugby", "Tennis"),
    "Age group": ("0-14", "15-24", "25-34", "35-44", "45-54", "55-64", "65+"),
    "Department": ("Design", "Finance", "Legal", "Research", "Sales", "Service", "Support"),
    "Company": ("Aldora", "Brightex", "Corvane", "Delphin", "Evenor", "Fluxon", "Gravita", "Helix"),
}  # fmt: skip
_SERIES: dict[str, tuple[str, ...]] = {
    "sex": ("Men", "Women"),
    "region": ("North", "South", "East", "West"),
    "device": ("Laptops", "Phones", "Tablets", "Cameras"),
    "source": ("Coal", "Gas", "Solar", "Wind"),
    "age": ("Children", "Adults", "Seniors"),
    "channel": ("Online", "Store", "Phone", "Partners"),
    "plan": ("Basic", "Family", "Student", "Premium"),
}
_TOPICS = (
    _Topic("Export value", "exports", "million USD", (1, 2), ("Country", "Fruit", "Company"), ("region", "device")),
    _Topic("Ticket revenue", "tickets sold", "thousand EUR", (1, 2), ("Sport", "City"), ("age", "channel")),
    _Topic("Number of visitors", "visitors", "", (2, 3), ("City", "Country", "Age group"), ("age", "sex", "region")),
    _Topic("Energy use", "energy use", "TWh", (1, 2), ("Country", "City"), ("source", "region")),
    _Topic("Rainfall", "", "mm", (1, 2), ("City", "Country"), ("region",)),
    _Topic("Price", "", "USD", (0, 1), ("Fruit", "City", "Company"), ("channel", "region", "plan")),
    _Topic("Unemployment rate", "", "%", (1,), ("Country", "City", "Age group"), ("sex", "region")),
    _Topic("Number of subscribers", "subscribers", "millions", (0, 1), ("Company", "Country"), ("plan", "region")),
    _Topic("Revenue", "revenue", "billion EUR", (0, 1), ("Company", "Department"), ("device", "channel")),
    _Topic("Production", "production", "tonnes", (2, 3, 4), ("Fruit", "Country", "Company"), ("region",)),
    _Topic("Waiting time", "", "minutes", (1,), ("Department", "City"), ("channel", "plan", "age")),
    _Topic("Number of books sold", "books sold", "", (2, 3), ("Age group", "City", "Country"), ("age", "channel")),
    _Topic("Approval rate", "", "%", (1,), ("Age group", "Country", "Department"), ("sex", "region")),
    _Topic("Number of new patents", "new patents", "", (1, 2), ("Company", "Country"), ("region", "device")),
    _Topic("Carbon output", "carbon output", "Mt", (0, 1, 2), ("Country", "City", "Company"), ("source", "region")),
)
_SCATTER = (  # axis, its top, what is measured, unit
    ("Temperature", 40, "Energy use", "TWh"), ("Study hours", 20, "Test score", "points"),
    ("Age", 80, "Income", "thousand USD"), ("Distance", 50, "Travel time", "minutes"),
    ("Speed", 100, "Fuel use", "litres"), ("Engine size", 60, "Price", "thousand EUR"),
)  # fmt: skip
_SIZES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {  # (categories), (series): fewest and most
    "vertical_bar": ((3, 8), (1, 1)),
    "horizontal_bar": ((3, 8), (1, 1)),
    "grouped_bar": ((2, 5), (2, 3)),
    "stacked_bar": ((2, 6), (2, 4)),
    "line": ((4, 9), (1, 4)),
    "pie": ((3, 6), (1, 1)),
    "scatter": ((6, 12), (1, 2)),
}


def sample_table(rng: np.random.Generator, kind: str, printed: bool = False) -> ChartTable:
    """Makes up a table.

    Args:
        rng: Where the randomness comes from; it is advanced.
        kind: One of `CHART_KINDS`; it decides on size and axis.
        printed: Whether the chart will print the values, so that they may be finer than an axis shows.

    Returns:
        A table with positive values, the largest at least three tenths of the way up; a pie's add up to 100.

    Raises:
        ValueError: The kind is unknown.
    """
    if kind not in CHART_KINDS:
        raise ValueError(f"chart kind must be one of {CHART_KINDS}, got {kind!r}")
    dice = Dice(rng)
    category_range, series_range = _SIZES[kind]
    count = dice.whole(*category_range)
    adds_up = kind in ("pie", "stacked_bar")
    topic = dice.pick([topic for topic in _TOPICS if topic.parts or not adds_up])
    measure, unit = topic.measure, topic.unit
    if kind == "scatter":
        axis, top, measure, unit = dice.pick(_SCATTER)
        places = sorted(dice.shuffled(range(1, 21))[:count])
        preposition = f"at {axis.lower()}"
        categories = tuple(str(place * top // 20) for place in places)
    else:
        axis, preposition, categories = _categories(dice, topic, kind, count)
        count = len(categories)
    over_time = axis in ("Year", "Month")
    if kind == "pie":
        measure, unit = f"Share of {topic.parts}", "%"
        columns = [_shares(dice, count, 1 if printed else 5)]
    else:
        # Values printed along several lines, or in low segments of a stack, would cover each other.
        wanted = 1 if kind == "line" and printed else dice.whole(*series_range)
        steps, grain = _grid(dice.pick((1, 2, 5)), dice.pick(topic.exponents if kind != "scatter" else (1,)), printed)
        lowest = 0.25 if kind == "stacked_bar" and printed else 0.12
        walk = over_time and dice.chance(0.7)
        columns = [_column(dice, count, steps, grain, walk, lowest) for _ in range(wanted)]
    if kind == "scatter" and len(columns) > 1:  # no point hides another
        low = Decimal("0.2") * steps * grain
        columns[1] = [b if b != a else a + low if a < 2 * low else a - low for a, b in zip(*columns, strict=True)]
    choices = [names for key in topic.series if len(names := _SERIES[key]) >= len(columns)] or [_SERIES["region"]]
    names = (measure,) if len(columns) == 1 else dice.pick(choices)
    if kind == "scatter" and len(columns) > 1:
        names = ("Group A", "Group B")
    title = f"{measure} by {axis.lower()}"
    if not over_time and kind != "scatter" and dice.chance(0.5):
        title += f", {dice.whole(1995, 2024)}"
    series = tuple(Series(name, tuple(values)) for name, values in zip(names, columns, strict=False))
    return ChartTable(title, measure.lower(), unit, axis, preposition, categories, series)


def _categories(dice: Dice, topic: _Topic, kind: str, count: int) -> tuple[str, str, tuple[str, ...]]:
    if kind == "line" or (kind != "pie" and dice.chance(0.3)):
        if dice.chance(0.75):
            step = dice.pick((1, 1, 1, 2, 5))
            first = dice.whole(1980, 2024 - step * count)
            return "Year", "in", tuple(str(first + step * place) for place in range(count))
        first = dice.whole(0, 12 - count)
        return "Month", "in", _NAMES["Month"][first : first + count]
    axis = dice.pick(topic.axes)
    names = _NAMES[axis]
    if axis == "Age group":
        return axis, "for age group", names[:count]
    return axis, "for", tuple(dice.shuffled(names)[:count])


def _grid(lead: int, power: int, printed: bool) -> tuple[int, Decimal]:
    """Steps up to the top of the axis (`lead` times 10 to the `power`) and the value of one step."""
    top = Decimal(lead).scaleb(power)
    coarse = {1: Decimal("0.02"), 2: Decimal("0.05"), 5: Decimal("0.1")}[lead].scaleb(power)
    grain = Decimal("0.01").scaleb(power) if printed else coarse
    return int(top / grain), grain


def _column(dice: Dice, count: int, steps: int, grain: Decimal, walk: bool, lowest: float) -> list[Decimal]:
    low = max(1, round(lowest * steps))
    places = [dice.whole(low, steps)]
    for _ in range(count - 1):
        if walk:
            reach = round(0.22 * steps)
            places.append(min(steps, max(low, places[-1] + dice.whole(-reach, reach))))
        else:
            places.append(dice.whole(low, steps))
    if max(places) < 0.3 * steps:
        places[dice.whole(0, count - 1)] = dice.whole(round(0.5 * steps), steps)
    return [place * grain for place in places]


def _shares(dice: Dice, count: int, grain: int) -> list[Decimal]:
    """Positive multiples of `grain`, each at least 5, that add up to 100."""
    spare = (100 - 5 * count) // grain
    cuts = [0, *sorted(dice.whole(0, spare) for _ in range(count - 1)), spare]
    return [Decimal(5 + grain * (after - before)) for before, after in itertools.pairwise(cuts)]
