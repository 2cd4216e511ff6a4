"""Puts the page about a run together: headline, learning, where it is wrong, samples, all answers, the run itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from smmd_lightning.metrics.facts import RELATIVE_CURVE, MetricFacts
from smmd_lightning.metrics.registry import load
from smmd_lightning.report import task_plots as plots
from smmd_lightning.report.before import before_and_after
from smmd_lightning.report.cards import gallery
from smmd_lightning.report.curves import learning_curves
from smmd_lightning.report.document import document, section, write_document
from smmd_lightning.report.judged import Judged, judge_rows
from smmd_lightning.report.picking import picture
from smmd_lightning.report.run import Run, read_run
from smmd_lightning.report.svg import number

MOST_ROWS = 5000
MOST_TEXT = 2000
"""Letters of an answer or prompt that the table keeps."""


def write_report(
    folder: str | Path, target: str | Path | None = None, before: str | Path | None = None, **names: str
) -> Path:
    """Writes the page about a run.

    Args:
        folder: The run's folder.
        target: File to write. None: `report.html` in that folder.
        before: Folder of a run of the same model before training, whose beliefs are laid beside this one's.
        **names: Names of the files `predictions` and `metrics`, see `read_run`.

    Returns:
        The file written.

    Raises:
        ValueError: A folder holds no run, a file in it is damaged, or `before` shares no sample with distributions.
    """
    page = render_page(read_run(folder, **names), read_run(before, **names) if before is not None else None)
    return write_document(Path(folder) / "report.html" if target is None else target, page)


def render_page(run: Run, before: Run | None = None) -> str:
    """Returns the page about a run as HTML, with what it believed before training where that run is given."""
    judged, unknown = _judge(run)
    sections = [
        section("Learning", "".join(learning_curves(run)) or '<p class="note">No training log was found.</p>'),
        *(_task_section(part, run) for part in judged),
        *(f'<p class="note">{escape(reason)}</p>' for reason in unknown),
    ]
    if before is not None:
        sections.append(section("Beliefs before and after training", before_and_after(before.answers, run.answers)))
    if run.answers:
        sections.append(_table_section(run))
    sections.append(_about_section(run))
    name = run.folder.resolve().name
    head = f"<header><h1>{escape(name)}</h1><p>{escape(_summary(run))}</p></header>{_headlines(judged, run)}"
    return document(f"{name} · report", head + "".join(sections), _table_data(run))


def _judge(run: Run) -> tuple[list[Judged], list[str]]:
    by_task: dict[str, list[dict[str, Any]]] = {}
    for row in run.answers:
        by_task.setdefault(str(row.get("task")), []).append(row)
    judged, unknown = [], []
    for task, rows in by_task.items():
        try:
            judged.append(judge_rows(task, rows))
        except ValueError as error:
            unknown.append(f"{len(rows)} answers are shown in the table only: {error}")
    return judged, unknown


def _summary(run: Run) -> str:
    model = run.settings.get("model") or {}
    backbone = (model.get("backbone") or {}).get("init_args") or {}
    loss = (model.get("numeric_loss") or {}).get("class_path", "") if model.get("numeric_loss") else ""
    steps = max((curve[-1][0] for curve in run.curves.values() if curve), default=0)
    parts = [
        str(backbone.get("path", "")),
        f"cross-entropy + {model.get('loss_weight', 1)} × {loss.rpartition('.')[2]}" if loss else "",
        f"{steps:,} steps" if steps else "",
        f"{len(run.answers):,} answers" if run.answers else "no answers yet: run test",
    ]
    return " · ".join(part for part in parts if part)


def _headlines(judged: list[Judged], run: Run) -> str:
    parts = []
    for part in judged:
        if len(judged) > 1:
            parts.append(f"<h2>{escape(_task_title(part))}</h2>")
        tiles = [
            f'<div class="tile"><div class="name">{escape(_facts(part, name).title)}</div>'
            f'<div class="value">{_facts(part, name).shown(found.value)}</div>'
            f'<div class="range">{_facts(part, name).shown(found.low)} to '
            f"{_facts(part, name).shown(found.high)}</div></div>"
            for name in _tiles(part)
            if (found := part.intervals.get(name)) is not None
        ]
        parts.append(f'<div class="tiles">{"".join(tiles)}</div>')
    if judged:
        parts.append(
            '<p class="note">Below each value its 95 % interval over the answers (Wilson for shares, bootstrap for '
            "errors); it says nothing about another training run.</p>"
        )
        parts += [f'<p class="note">{escape(line)}</p>' for line in disagreements(judged, run.metrics)]
    if run.metrics:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{number(value)}</td></tr>" for name, value in run.metrics.items()
        )
        parts.append(f"<details><summary>All metrics</summary><table>{rows}</table></details>")
    return "".join(parts)


def disagreements(judged: Iterable[Judged], metrics: dict[str, float]) -> list[str]:
    """Says where the metrics file and the answers differ: the files are then of two different evaluations."""
    judged = list(judged)
    lines = []
    for part in judged:
        prefix = f"test/{part.task}/" if len(judged) > 1 else "test/"
        for name in _tiles(part):
            stored, found = metrics.get(prefix + name), part.intervals.get(name)
            if stored is not None and found is not None and abs(stored - found.value) > 0.005 * max(1.0, abs(stored)):
                lines.append(
                    f"metrics.json says {prefix}{name} = {number(stored)}, the answers give {number(found.value)}."
                )
    return lines


def _task_section(part: Judged, run: Run) -> str:
    if part.metrics.plots:
        shown = list(load(part.metrics.plots)(part))
    else:
        shown = [plots.relative_histogram(part)] if part.metrics.curve is RELATIVE_CURVE else []
        shown.append(plots.number_scatter(part))
    shown += [plots.tolerance_curve(part), plots.calibration(part)]
    name = escape(_task_title(part))
    return (
        section(f"{name}: where it is wrong", "".join(shown))
        + section(f"{name}: digits by place", "".join(plots.confusions(part)))
        + section(f"{name}: results by kind", "".join(plots.by_kind(part)))
        + section(f"{name}: samples", gallery(part.rows, run.folder), "samples")
    )


def _table_section(run: Run) -> str:
    note = ""
    if len(run.answers) > MOST_ROWS:
        note = f'<p class="note">The first {MOST_ROWS:,} of {len(run.answers):,} answers; the file has them all.</p>'
    pictures = sum(1 for row in run.answers if row.get("image"))
    note += (
        f'<p class="note">A row opens prompt, whole output and picture; {pictures:,} of {len(run.answers):,} pictures '
        "were stored (<code>--results.save_images</code> stores more).</p>"
    )
    return (
        '<section><h2>All answers</h2><div class="filters" role="search">'
        '<input type="search" id="words" placeholder="Find in id, prompt, answer" aria-label="Find">'
        '<select id="which" aria-label="Which answers"><option value="">all</option>'
        '<option value="wrong">wrong</option><option value="right">right</option>'
        '<option value="unread">nothing read</option></select>'
        '<select id="kind" aria-label="Kind"><option value="">every kind</option></select>'
        '<span id="count"></span></div>'
        '<div class="wide"><table id="rows"><thead></thead><tbody></tbody></table></div>'
        '<button id="more" type="button">Show more</button>'
        '<noscript><p class="note">The table needs JavaScript.</p></noscript>'
        f"{note}</section>"
    )


def _table_data(run: Run) -> list[dict[str, Any]]:
    data = []
    for row in run.answers[:MOST_ROWS]:
        meta = row.get("meta") or {}
        kept = {name: row.get(name) for name in ("id", "task", "truth", "parsed", "error", "error_unit", "correct")}
        kept |= {name: str(row.get(name) or "")[:MOST_TEXT] for name in ("prompt", "raw")}
        facts = {name: str(value)[:200] for name, value in meta.items() if name != "task"}
        kept["meta"] = facts
        for place, found in enumerate(row.get("distributions") or [], start=1):
            belief = f"{number(float(found['expected']))} ± {number(float(found['spread']))}"
            facts[f"number {place}"] = f"{found['written']}, expected {belief}"
        if isinstance(kept["error"], float) and not math.isfinite(kept["error"]):
            kept["error"] = None
        kept["kind"] = str(meta.get("kind") or meta.get("numerals") or "")
        if address := picture(run.folder, row):
            kept["image"] = address
        data.append(kept)
    return data


def _about_section(run: Run) -> str:
    facts: list[tuple[str, str]] = [("folder", str(run.folder))]
    if run.seconds and not run.facts.get("seconds"):
        facts.append(("training log spans", duration(run.seconds)))
    for name, value in run.facts.items():
        if name == "seconds" and isinstance(value, dict):
            facts += [(f"time, {stage}", duration(float(spent))) for stage, spent in value.items()]
        elif name != "folder":
            facts.append((name, str(value)))
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in facts)
    config = f"<details><summary>Config</summary><pre>{escape(run.config)}</pre></details>" if run.config else ""
    return f'<section><h2>The run</h2><div class="wide"><table class="facts">{rows}</table></div>{config}</section>'


def duration(seconds: float) -> str:
    """Writes a time span.

    >>> duration(3723)
    '1 h 2 min'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _task_title(part: Judged) -> str:
    return part.metrics.title if part.metrics.task == part.task and part.metrics.title else part.task.capitalize()


def _tiles(part: Judged) -> list[str]:
    return list(dict.fromkeys((part.metrics.headline, *part.metrics.tiles)))


def _facts(part: Judged, name: str) -> MetricFacts:
    facts = part.metrics.facts_of(name)
    if facts is None:
        raise ValueError(f"{type(part.metrics).__name__} shows {name!r} and does not declare it among its `facts`.")
    return facts
