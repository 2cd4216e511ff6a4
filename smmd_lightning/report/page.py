"""Puts the page about a run together: results, samples, where it is wrong, learning, all answers, the run itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from smmd_lightning.metrics.facts import RELATIVE_CURVE
from smmd_lightning.metrics.registry import load
from smmd_lightning.report import task_plots as plots
from smmd_lightning.report.before import before_and_after
from smmd_lightning.report.cards import gallery
from smmd_lightning.report.curves import learning_curves
from smmd_lightning.report.document import document, write_document
from smmd_lightning.report.durations import duration
from smmd_lightning.report.headline import results, task_title
from smmd_lightning.report.judged import Judged, judge_rows
from smmd_lightning.report.run import Run, read_run
from smmd_lightning.report.table import MOST_ROWS, table_data
from smmd_lightning.report.templates import render


@dataclass(frozen=True)
class Section:
    """One section of a page: its heading, its HTML, and the class of the box around that (empty for none)."""

    title: str
    content: str
    kind: str = "plots"

    @property
    def key(self) -> str:
        """Its name in addresses."""
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


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
    sections = [Section("Results", results(judged, run.metrics), "")]
    for part in judged:
        sections.append(Section(_named("Samples", part, judged), gallery(part.rows, run.folder), ""))
    for part in judged:
        sections += _task_sections(part, judged)
    learning = "".join(learning_curves(run)) or '<p class="note">No training log was found.</p>'
    sections.append(Section("Learning", learning))
    if before is not None:
        compared = before_and_after(before.answers, run.answers)
        sections.append(Section("Beliefs before and after training", compared, ""))
    if run.answers:
        sections.append(Section("All answers", _table(run, unknown), ""))
    sections.append(Section("The run", render("about.html", facts=_facts(run), config=run.config), ""))
    name = run.folder.resolve().name
    # Our own code made the sections, and escaped in each what models and data sets wrote.
    shown = [
        {"key": part.key, "title": part.title, "kind": part.kind, "content": Markup(part.content)}
        for part in sections
        if part.content.strip()
    ]
    body = render("page.html", name=name, summary=_summary(run), sections=shown)
    return document(f"{name} · report", body, table_data(run, judged))


def _judge(run: Run) -> tuple[list[Judged], list[str]]:
    by_task: dict[str, list[int]] = {}
    for place, row in enumerate(run.answers):
        by_task.setdefault(str(row.get("task")), []).append(place)
    judged, unknown = [], []
    for task, places in by_task.items():
        try:
            judged.append(judge_rows(task, [run.answers[place] for place in places], places))
        except ValueError as error:
            unknown.append(f"{len(places):,} answers are shown in this table only: {error}")
    return judged, unknown


def _summary(run: Run) -> str:
    loss = run.setting("model.numeric_loss")
    named = str(loss.get("class_path", "") if isinstance(loss, dict) else loss or "").rpartition(".")[2]
    weight = run.setting("model.loss_weight")
    steps = max((curve[-1][0] for curve in run.curves.values() if curve), default=0)
    parts = [
        str(run.setting("model.backbone.init_args.path") or ""),
        f"cross-entropy + {1 if weight is None else weight} × {named}" if named else "",
        f"{steps:,} steps" if steps else "",
        f"{len(run.answers):,} answers" if run.answers else "no answers yet: run test",
    ]
    return " · ".join(part for part in parts if part)


def _named(title: str, part: Judged, judged: list[Judged]) -> str:
    return f"{task_title(part)}: {title[:1].lower()}{title[1:]}" if len(judged) > 1 else title


def _task_sections(part: Judged, judged: list[Judged]) -> list[Section]:
    if part.metrics.plots:
        shown = list(load(part.metrics.plots)(part))
    else:
        shown = [plots.relative_histogram(part)] if part.metrics.curve is RELATIVE_CURVE else []
        shown.append(plots.number_scatter(part))
    shown += [plots.tolerance_curve(part), plots.calibration(part)]
    return [
        Section(_named("Where it is wrong", part, judged), "".join(shown)),
        Section(_named("Results by kind", part, judged), "".join(plots.by_kind(part))),
        Section(_named("Digits by place", part, judged), "".join(plots.confusions(part))),
    ]


def _table(run: Run, unknown: list[str]) -> Markup:
    pictures = sum(1 for row in run.answers if row.get("image"))
    table = render("table.html", total=len(run.answers), most=MOST_ROWS, pictures=pictures)
    return table + Markup("").join(Markup('<p class="note">{}</p>').format(reason) for reason in unknown)


def _facts(run: Run) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = [("folder", str(run.folder))]
    if run.seconds and not run.facts.get("seconds"):
        facts.append(("training log spans", duration(run.seconds)))
    for name, value in run.facts.items():
        if name == "seconds" and isinstance(value, dict):
            facts += [(f"time, {stage}", duration(float(spent))) for stage, spent in value.items()]
        elif name != "folder":
            facts.append((name, str(value)))
    return facts
