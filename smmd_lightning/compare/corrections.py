"""Corrections for many comparisons.

One real example, two tasks with two losses each; the p values of a task are those of Dunnett's test already::

    >>> holm_over_tasks({"clocks": {"a": 0.001, "b": 0.2}, "sums": {"a": 0.03, "b": 0.6}})["clocks"]
    {'a': 0.002, 'b': 0.4}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def holm(values: Sequence[float]) -> list[float]:
    """Adjusts p values so that one wrong rejection among all of them is as rare as the level says (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted


def holm_over_tasks(values: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Adjusts p values that each account for all comparisons of their own task, so that they account for all tasks.

    This is Holm's procedure with tasks in place of single tests: a task leaves the count only when all of its
    comparisons are rejected. Counting a task out at its first rejection would let the others pass too easily. It is the
    closed test whose intersections compare the least p of the tasks that they touch with the level divided by the
    number of these tasks.

    Args:
        values: p values by task and comparison.

    Returns:
        Adjusted p values, with the keys of `values`.
    """
    largest = {task: max(found.values()) for task, found in values.items() if found}
    adjusted: dict[str, dict[str, float]] = {}
    for task, found in values.items():
        others = sorted((p for other, p in largest.items() if other != task), reverse=True)
        adjusted[task] = {
            name: min(1.0, max([p, *((k + 2) * min(p, other) for k, other in enumerate(others))]))
            for name, p in found.items()
        }
    return adjusted
