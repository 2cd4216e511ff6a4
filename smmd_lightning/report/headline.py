"""The first section of a page: the metrics that people watch, with their intervals, and all others below."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from smmd_lightning.metrics.facts import MetricFacts
from smmd_lightning.metrics.registry import metric_facts
from smmd_lightning.report.judged import Judged
from smmd_lightning.report.svg import number
from smmd_lightning.report.templates import render


def results(judged: list[Judged], metrics: dict[str, float]) -> Markup:
    """Returns tiles for each task, notes about files that disagree, and the table of all metrics.

    Args:
        judged: The answers of each task.
        metrics: Values of the metrics file by name.
    """
    groups = [{"title": task_title(part), "tiles": headline_tiles(part)} for part in judged]
    notes = [*disagreements(judged, metrics), *(line for part in judged if (line := rejudged(part)))]
    listed = [{"name": name, "title": title(name), "value": number(value)} for name, value in metrics.items()]
    return render("results.html", groups=groups, notes=notes, metrics=listed)


def headline_tiles(part: Judged) -> list[dict[str, str]]:
    """Returns name, value and interval of the metrics that a task shows first."""
    shown = []
    for name in watched(part):
        if (found := part.intervals.get(name)) is not None:
            facts = facts_of(part, name)
            interval = {side: facts.shown(getattr(found, side)) for side in ("value", "low", "high")}
            shown.append({"name": facts.title, **interval})
    return shown


def disagreements(judged: Iterable[Judged], metrics: dict[str, float]) -> list[str]:
    """Says where the metrics file and the answers differ: the files are then of two different evaluations."""
    judged = list(judged)
    lines = []
    for part in judged:
        prefix = f"test/{part.task}/" if len(judged) > 1 else "test/"
        for name in watched(part):
            stored, found = metrics.get(prefix + name), part.intervals.get(name)
            if stored is not None and found is not None and abs(stored - found.value) > 0.005 * max(1.0, abs(stored)):
                lines.append(
                    f"metrics.json says {prefix}{name} = {number(stored)}, the answers give {number(found.value)}."
                )
    return lines


def rejudged(part: Judged) -> str:
    """Says how many answers the present rules judge otherwise than the file; empty for none."""
    if not part.changed:
        return ""
    return (
        f"{part.changed:,} of {len(part.rows):,} answers are judged otherwise here than in the prediction file, which "
        "was written under other rules; this page follows the present ones."
    )


def title(name: str) -> str:
    """Names a logged metric in words.

    >>> [title(name) for name in ("test/median_error_minutes", "test/by_kind/roman/exact_match", "test/odd_thing")]
    ['Median error', 'Exact match (roman)', 'Odd thing']
    """
    own = name.rpartition("/")[2]
    try:
        words = metric_facts(name).title
    except ValueError:
        words = (own[:1].upper() + own[1:]).replace("_", " ")
    _, is_part, kind = name.rpartition("by_kind/")
    return f"{words} ({kind.rpartition('/')[0]})" if is_part else words


def task_title(part: Judged) -> str:
    """Names a task for people."""
    known = part.metrics.task == part.task and part.metrics.title
    return part.metrics.title if known else part.task.capitalize()


def watched(part: Judged) -> list[str]:
    """Names the metrics that a task shows first."""
    return list(dict.fromkeys((part.metrics.headline, *part.metrics.tiles)))


def facts_of(part: Judged, name: str) -> MetricFacts:
    """Returns what is known about a metric of a task.

    Raises:
        ValueError: The task shows a metric that it does not declare.
    """
    facts: Any = part.metrics.facts_of(name)
    if facts is None:
        raise ValueError(f"{type(part.metrics).__name__} shows {name!r} and does not declare it among its `facts`.")
    return facts
