"""What a model believes of a whole answer: the likeliest answers with their probabilities, as values of the task.

Unusual: nothing is assumed about digits. Each answer was found whole, with its exact probability
(`Backbone.likely`); two ways to write one value are added up. On a scale that closes on itself values are counted from
the median on, so that an interval may cross the top of a dial.

One real example, for a clock that shows five past three or five past four::

    >>> from smmd_lightning.metrics import ClockMetrics
    >>> from smmd_lightning.types import NumericExample
    >>> example = NumericExample("a", "What time is it?", "03:05")
    >>> law = law_of(ClockMetrics(), example, ["03:05", "3:05", "04:05", "it"], [0.5, 0.1, 0.3, 0.05])
    >>> law.values, [round(mass, 2) for mass in law.masses], law.median(), law.mean()
    ((185.0, 245.0), [0.6, 0.3], '03:05', '03:25')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.distribution import LEVELS, DistributionMetrics
from smmd_lightning.metrics.functional.distribution import central_interval
from smmd_lightning.types import NumericExample

SHOWN = 12
"""Answers that a row of the prediction file lists."""


@dataclass(frozen=True)
class Law:
    """The likeliest answers to one question.

    Attributes:
        metrics: The metrics of the task, which say what a value is.
        texts: For each value the likeliest answer that has it, as the model wrote it.
        parsed: What was understood of each of them.
        values: Values that differ, in the task's unit (minutes for clocks); counted from the median on where the scale
            closes, so they may lie below 0 or above the period. The likeliest first.
        masses: Their probabilities; they sum to at most 1.
        period: Length of a scale that closes on itself; None for others.
    """

    metrics: AnswerMetrics
    texts: tuple[str, ...]
    parsed: tuple[str, ...]
    values: tuple[float, ...]
    masses: tuple[float, ...]
    period: float | None

    def median(self) -> str:
        """Returns the answer with the least expected distance from a value drawn from the law."""
        return self.texts[_center(self.values, self.masses, self.period)]

    def mean(self) -> str:
        """Returns the mean of the values, written as the likeliest answer is: with its decimals, words and unit."""
        total = sum(self.masses)
        value = self._written(sum(each * mass for each, mass in zip(self.values, self.masses, strict=True)) / total)
        first = self.parsed[0]
        return self.texts[0].replace(first, value, 1) if first in self.texts[0] else value

    def interval(self, level: float) -> tuple[str, str]:
        """Returns the ends of the central interval that holds `level` of the mass, written as truths are."""
        values, masses = torch.tensor([self.values]).double(), torch.tensor([self.masses]).double()
        low, high = central_interval(values, masses, level)
        return self._written(low.item()), self._written(high.item())

    def described(self) -> dict[str, Any]:
        """Returns plain values for the prediction file."""
        pairs = [[text, round(mass, 6)] for text, mass in zip(self.texts, self.masses, strict=True)]
        return {
            "median": self.median(),
            "mean": self.mean(),
            **{f"interval_{100 * level:g}": list(self.interval(level)) for level in LEVELS},
            "answers": pairs[:SHOWN],
            "left_out": round(max(0.0, 1 - sum(self.masses)), 6),
        }

    def _written(self, value: float) -> str:
        return self.metrics.text_of(value if self.period is None else value % self.period, self.parsed[0])


def law_of(
    metrics: AnswerMetrics, example: NumericExample, texts: Sequence[str], probabilities: Sequence[float]
) -> Law | None:
    """Makes the law of one question; None where no text has a value, or values mean nothing (the answer is a word).

    Args:
        metrics: The metrics of the example's task.
        example: The question.
        texts: Answers that a model may write, the likeliest first.
        probabilities: Their probabilities.
    """
    if metrics.value_of(metrics.score("", example).truth) is None:
        return None
    masses: dict[float, float] = {}
    written: dict[float, tuple[str, str]] = {}
    for text, probability in zip(texts, probabilities, strict=True):
        parsed = metrics.score(text, example).parsed
        if parsed is None or not probability > 0:
            continue
        value = metrics.value_of(parsed)
        if value is not None and math.isfinite(value):
            masses[value] = masses.get(value, 0.0) + probability
            written.setdefault(value, (text, parsed))
    if not masses:
        return None
    excess = max(1.0, sum(masses.values()))  # rounding may carry the sum above 1
    values = sorted(masses, key=lambda value: (-masses[value], value))
    found = [masses[value] / excess for value in values]
    period = metrics.period_of(example)
    center = values[_center(values, found, period)]
    turned = tuple(_near(value, center, period) for value in values)
    said, parsed_too = zip(*(written[value] for value in values), strict=True)
    return Law(metrics, said, parsed_too, turned, tuple(found), period)


def add_law(
    scores: DistributionMetrics, law: Law | None, example: NumericExample, greedy: str, metrics: AnswerMetrics
) -> None:
    """Adds one answer to the scores of laws, in the unit of the task's errors; nothing where the truth is a word.

    Args:
        scores: Where to.
        law: What was believed; None for nothing that has a value.
        example: The question.
        greedy: What greedy decoding wrote.
        metrics: The metrics of the example's task.
    """
    score = metrics.score(greedy, example)
    truth = metrics.value_of(score.truth)
    if truth is None:
        return
    unit, period = metrics.per_unit(example), metrics.period_of(example)
    said = None if score.parsed is None else metrics.value_of(score.parsed)
    center = 0.0 if law is None else law.values[_center(law.values, law.masses, period)]
    values, masses = ((0.0,), (0.0,)) if law is None else (law.values, law.masses)
    if (limits := metrics.limits_of(example)) is not None:
        values = tuple(min(max(value, limits[0]), limits[1]) for value in values)
        said = None if said is None else min(max(said, limits[0]), limits[1])
    scores.update(
        unit * torch.tensor([values], dtype=torch.float64),
        torch.tensor([masses], dtype=torch.float64),
        unit * torch.tensor([_near(truth, center, period)], dtype=torch.float64),
        unit * torch.tensor([math.nan if said is None else said], dtype=torch.float64),
        torch.tensor([metrics.largest_error(example)], dtype=torch.float64),
        None if period is None else unit * period,
    )


def _center(values: Sequence[float], masses: Sequence[float], period: float | None) -> int:
    """The place of the value with the least expected distance; of several, the likeliest."""
    at = torch.tensor(values, dtype=torch.float64)
    off = (at[:, None] - at).abs()
    if period is not None:
        off = torch.minimum(off % period, period - off % period)
    expected = (off * torch.tensor(masses, dtype=torch.float64)).sum(1)
    close = expected <= expected.min() * (1 + 1e-12)
    return max(close.nonzero()[:, 0].tolist(), key=lambda place: (masses[place], -values[place]))


def _near(value: float, center: float, period: float | None) -> float:
    """The same point of a closed scale, at most half a turn from another."""
    return value if period is None else center + (value - center + period / 2) % period - period / 2
