"""The part of a report that answers the hypotheses that were written before the first run.

One real example, a row::

    | crps | SMMD - CE | measurements | 8 | -0.2310 [-0.4101, -0.0519] | 0.0093 | 0.028 | less, p below 0.05 |
"""

from __future__ import annotations

from collections.abc import Sequence

from smmd_lightning.compare.blocks import Block, Heading, Text, TextTable
from smmd_lightning.compare.corrections import holm
from smmd_lightning.compare.findings import Findings
from smmd_lightning.compare.inference import Contrast
from smmd_lightning.compare.verdict_tables import written_interval

HEADER = ("metric", "contrast", "task", "seeds", "difference (95 %)", "p (task)", "p (all)", "least detectable", "rule")


def claims_section(findings: Findings, added: Sequence[str] = ()) -> list[Block]:
    """One row for each hypothesis and task; nothing where the grid has no hypotheses.

    Args:
        findings: What the final runs say.
        added: Losses that the grid gained after its hypotheses were written.
    """
    grid = findings.grid
    rows: list[list[str]] = []
    p_values: list[float] = []
    for claim in grid.hypotheses:
        ours, theirs = claim.contrast
        for task in claim.tasks or grid.tasks:
            found = _contrast(findings, task, claim.metric, ours, theirs)
            if found is None:
                continue
            label = grid.tasks[task].label or task
            start = [claim.metric, f"{grid.label(ours)} - {grid.label(theirs)}", label, str(found.seeds)]
            if found.problem:
                rows.append([*start, "–", "–", "–", "–", f"{claim.rule}: {found.problem}"])
                continue
            p_values.append(found.p)
            difference = written_interval(found.difference, signed=True)
            rows.append([*start, difference, f"{found.p:.2g}", "", f"{found.detectable:.4f}", claim.rule])
    if not rows:
        return []
    adjusted = iter(holm(p_values))
    for row in rows:
        if row[6] == "":
            row[6] = f"{next(adjusted):.2g}"
    later = ", ".join(grid.label(loss) for loss in added)
    return [
        Heading("Hypotheses"),
        Text(
            "Written before the first run. p (task) accounts for all losses of the task, p (all) for all rows here as "
            "well (Holm)." + (f" Added to the grid afterwards: {later}." if later else "")
        ),
        TextTable(HEADER, rows),
    ]


def _contrast(findings: Findings, task: str, metric: str, ours: str, theirs: str) -> Contrast | None:
    """The contrast among those of all losses of the task; None while one of the two has no finished run."""
    if not {ours, theirs} <= set(findings.losses(task)) or metric not in findings.grid.tasks[task].metrics:
        return None
    return next((found for found in findings.compare(task, metric, theirs) if found.loss == ours), None)
