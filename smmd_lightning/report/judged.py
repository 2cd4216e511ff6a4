"""What the page says about many answers: intervals, tolerances, confusions, kinds of mistakes.

Unusual: answers are judged again, from their raw text, by the metrics of their task, so that the page and metrics.json
follow one rule.

Shape legend: N answers, C columns of a row of a metric.

One real example, 9 of 10 right::

    >>> tuple(round(edge, 3) for edge in wilson(9, 10))
    (0.596, 0.982)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smmd_lightning.metrics import AnswerMetrics, metrics_for
from smmd_lightning.types import NumericExample

RESAMPLES = 400
NORMAL_975 = 1.959964
NO_DIGIT = "–"
"""Stands for a digit that the answer does not have at the place of the truth's."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(hits: float, total: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927), sensible at 0 and 1 as well; (0, 1) of no answer."""
    if total == 0:
        return 0.0, 1.0
    share, z2 = hits / total, NORMAL_975**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = NORMAL_975 * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2)) / (1 + z2 / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(
    table_NC: Tensor, statistic: Callable[[Tensor], dict[str, Tensor]], seed: int = 0, resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """Percentile bootstrap over answers (Efron 1979), of all values of a statistic at once.

    Args:
        table_NC: (N, C), one row an answer.
        statistic: Gives scalars by name of such a table.
        seed: Of the resampling.
        resamples: How many tables are drawn.

    Returns:
        The value on the table itself, with the 2.5 and 97.5 percentiles of the resamples.
    """
    generator = torch.Generator().manual_seed(seed)
    values = {name: float(value) for name, value in statistic(table_NC).items()}
    drawn: dict[str, list[float]] = {name: [] for name in values}
    for _ in range(resamples):
        rows = torch.randint(len(table_NC), (len(table_NC),), generator=generator)
        for name, value in statistic(table_NC[rows]).items():
            if name in drawn:
                drawn[name].append(float(value))
    intervals = {}
    for name, whole in values.items():
        ordered = sorted(number for number in drawn[name] if not math.isnan(number)) or [math.nan]
        low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.025, 0.975))
        intervals[name] = Interval(whole, low, high)
    return intervals


@dataclass(frozen=True)
class Judged:
    """Answers of one task, judged.

    Attributes:
        task: Name of the task.
        metrics: Metrics of the task, which also say how it is shown.
        rows: The N rows of the prediction file, judged by the present rules.
        places: Where each row stands in the file, from 0.
        changed: How many rows the file judges otherwise.
        table_NC: One row an answer, as the task's metric makes it.
        intervals: All metrics of the task with their 95 % intervals.
    """

    task: str
    metrics: AnswerMetrics
    rows: list[dict[str, Any]]
    places: list[int]
    changed: int
    table_NC: Tensor
    intervals: dict[str, Interval]


def judge_rows(task: str, rows: Sequence[dict[str, Any]], places: Sequence[int] | None = None) -> Judged:
    """Judges rows of the prediction file by the metric of their task; intervals by Wilson for shares, else bootstrap.

    Args:
        task: Name of the task.
        rows: Rows of the prediction file.
        places: Where each of them stands in the file. None: they are the whole file.

    Raises:
        ValueError: A truth is none of that task.
    """
    metrics = metrics_for(task)
    found = [
        metrics.judge(
            str(row.get("raw") or ""),
            NumericExample(str(row.get("id")), "", str(row.get("truth")), meta=row.get("meta") or {}),
        )
        for row in rows
    ]
    table_NC = torch.tensor([each.row for each in found], dtype=torch.float32)
    kept = []
    for row, each in zip(rows, found, strict=True):
        score = each.score
        judged = {"parsed": score.parsed, "error": score.error, "correct": score.correct, "error_unit": metrics.unit}
        kept.append({**row, "meta": row.get("meta") or {}, **judged})
    changed = sum(
        "correct" in row and bool(row["correct"]) != new["correct"] for row, new in zip(rows, kept, strict=True)
    )
    intervals = bootstrap(table_NC, metrics.summarise)
    for name, interval in intervals.items():
        facts = metrics.facts_of(name)
        if facts is not None and facts.unit == "share":
            total = metrics.counted(name, table_NC)
            intervals[name] = Interval(interval.value, *wilson(interval.value * total, total))
    return Judged(
        task, metrics, kept, list(range(len(kept)) if places is None else places), changed, table_NC, intervals
    )


def share_within(errors: Sequence[float], tolerances: Sequence[float]) -> list[Interval]:
    """Share of answers whose error is at most each tolerance; infinite errors count as answers that are wrong.

    >>> [round(found.value, 2) for found in share_within([0, 3, 9, float("inf")], [0, 5, 10])]
    [0.25, 0.5, 0.75]
    """
    total = len(errors)
    hits = [sum(1 for error in errors if error <= tolerance * (1 + 1e-9)) for tolerance in tolerances]
    return [Interval(hit / max(total, 1), *wilson(hit, total)) for hit in hits]


def digit_confusion(pairs: Sequence[tuple[str, str]]) -> dict[int, Counter[tuple[str, str]]]:
    """Counts true and answered digits by place: 0 for ones, 1 for tens, -1 for tenths.

    Args:
        pairs: Texts of digits, truth first, with or without decimals. A place that the truth does not have is not
            counted; decimals that an answer leaves out are 0.

    Returns:
        By place, counts of (true digit, answered digit); the answered digit may be `NO_DIGIT`.

    >>> digit_confusion([("12", "7")])
    {0: Counter({('2', '7'): 1}), 1: Counter({('1', '–'): 1})}
    """
    counts: dict[int, Counter[tuple[str, str]]] = {}
    for truth, answer in pairs:
        (whole, _, decimals), (said, _, said_decimals) = truth.partition("."), answer.partition(".")
        for place, digit in enumerate(reversed(whole)):
            answered = said[-1 - place] if place < len(said) else NO_DIGIT
            counts.setdefault(place, Counter())[digit, answered] += 1
        for place, digit in enumerate(decimals):
            answered = said_decimals[place] if place < len(said_decimals) else "0"
            counts.setdefault(-1 - place, Counter())[digit, answered] += 1
    return dict(sorted(counts.items()))


def groups(rows: Sequence[dict[str, Any]], most: int = 24) -> dict[str, dict[str, list[int]]]:
    """Sorts answers by each fact in their `meta` that has 2 to `most` values: by fact, by value, row numbers.

    A fact that differs in every answer, such as the picture's name, says nothing about kinds and is left out.
    Numbers are sorted as numbers, anything else by how often it comes.
    """
    found: dict[str, dict[Any, list[int]]] = {}
    for number, row in enumerate(rows):
        for name, value in (row.get("meta") or {}).items():
            if name != "task" and isinstance(value, (str, int, float, bool)):
                found.setdefault(name, {}).setdefault(value, []).append(number)
    kept = {}
    for name, by_value in found.items():
        if 2 <= len(by_value) <= min(most, len(rows) - 1):
            numeric = all(isinstance(value, (int, float)) for value in by_value)
            ordered = sorted(by_value.items(), key=lambda item: item[0] if numeric else (-len(item[1]), str(item[0])))
            kept[name] = {str(value): numbers for value, numbers in ordered}
    return kept
