"""The metrics of each task, found by the task's name; and what is known about a metric, found by its logged name.

Unusual: a task is declared once, by a subclass of `AnswerMetrics` that says `task = "gauge"`. Defining the class is
all there is to do: report, gallery, best checkpoint and comparison ask here.

One real example::

    >>> metric_facts("val/clock/median_error_minutes")
    MetricFacts(direction='min', unit='minutes', title='Median error')
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from smmd_lightning.metrics.base import TASKS, AnswerMetrics
from smmd_lightning.metrics.distribution import DistributionMetrics
from smmd_lightning.metrics.facts import LOSSES, MetricFacts, declared_facts

FALLBACK = "number"
"""The task whose metrics judge the answers of a task that nobody declared."""

STAGES = ("val/", "test/", "train/", "sanity/")


def metrics_for(task: str) -> AnswerMetrics:
    """Returns new metrics of a task; those of plain numbers where nobody declared the task."""
    return TASKS.get(task, TASKS[FALLBACK])()


def metric_facts(name: str) -> MetricFacts:
    """Returns what is known about a metric.

    Args:
        name: The name as it is logged, with or without stage, task and kind: "exact_match", "val/loss",
            "test/clock/by_kind/roman/exact_match".

    Raises:
        ValueError: No metrics class declares it, or two of them disagree about which way is better.
    """
    rest = name
    for stage in STAGES:
        rest = rest.removeprefix(stage)
    if rest in LOSSES:
        return LOSSES[rest]
    task, _, inner = rest.partition("/")
    classes = [TASKS[task]] if inner and task in TASKS else list(TASKS.values())
    own = rest.rpartition("/")[2]
    found = [facts for metrics in classes if (facts := metrics.facts_of(own)) is not None]
    if not found and (facts := declared_facts(DistributionMetrics.facts, own)) is not None:
        found = [facts]
    if not found:
        known = [
            other for metrics in classes for parent in metrics.__mro__ for other in parent.__dict__.get("facts", ())
        ]
        near = get_close_matches(own, [*LOSSES, *known], n=1, cutoff=0.8)
        raise ValueError(
            f"Nothing says whether more or less of the metric {name!r} is better. "
            f"{f'Do you mean {near[0]!r}? ' if near else ''}Declare it among the `facts` of a "
            "metrics class (see docs/extending.md), or give the direction where it is used (checkpoint.mode)."
        )
    if len({facts.direction for facts in found}) > 1:
        raise ValueError(f"The tasks disagree on whether more or less of the metric {name!r} is better; name the task.")
    return found[0]


def larger_is_better(name: str) -> bool:
    """Whether more of a metric is better; for names and errors see `metric_facts`."""
    return metric_facts(name).direction == "max"


def load(path: str) -> Any:
    """Returns what a dotted path names, "package.module:function".

    Raises:
        ValueError: The path has another form, or names nothing.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ValueError(f"A path must read package.module:function, got {path!r}.")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{path!r} names nothing that can be imported: {error}") from error
