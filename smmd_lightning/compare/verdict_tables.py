"""The part of a report that says what differs and how sure that is: one section per task.

One real example, a row of a task's table::

    | SMMD | 0.3 | 5 | 0.5115 [0.4791, 0.5439] | +0.0254 [-0.0302, +0.0810] | 5 : 0 | 0.62 | 1 | 0.0661 | within noise |
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from smmd_lightning.compare.blocks import Block, Bullets, Heading, Text, TextTable
from smmd_lightning.compare.findings import Findings
from smmd_lightning.compare.inference import Contrast, Verdict, mean_interval
from smmd_lightning.metrics import larger_is_better
from smmd_lightning.report.judged import Interval

NOTES = [
    "Means have Student's 95 % interval over seeds.",
    "Differences are to the baseline, from a model with one effect per loss and one per seed; the residual is pooled "
    "over the losses of the task. A task's intervals hold together at 95 % (Dunnett's test for blocks).",
    "p (task) accounts for all losses of the task, p (all) for all tasks as well (Holm). A difference is called better "
    "or worse where p (all) is below 0.05: of reports without any true difference, at most 1 in 20 has such a verdict.",
    "The least detectable difference is the true difference that this design finds in 80 % of cases within its task: "
    "'within noise' says nothing about smaller ones.",
    "'No practical difference' says that the true difference is smaller than the margin named in the grid (two "
    "one-sided tests, Holm over all of them).",
]
"""How the tables are to be read."""

HEADER = (
    "loss", "weight", "seeds", "{metric} (95 %)", "difference (95 %)", "better : worse", "p (task)", "p (all)",
    "least detectable", "verdict",
)  # fmt: skip


def task_section(findings: Findings, task: str, weights: Mapping[str, float | None]) -> list[Block]:
    """Heading, table of the deciding metric, one sentence per loss, table of the other metrics.

    Args:
        findings: What the final runs say.
        task: Name of the task.
        weights: Weight of each loss in the final runs.
    """
    grid, choice = findings.grid, findings.grid.tasks[task]
    metric, *others = choice.metrics
    losses = findings.losses(task)
    contrasts = {found.loss: found for found in findings.contrasts[task]}
    verdicts = findings.verdicts[task]
    rows = []
    for loss in losses:
        values = list(findings.by_seed(task, loss, metric).values())
        weight = weights.get(loss)
        start = [grid.label(loss), "–" if weight is None else f"{weight:g}", str(len(values))]
        found = _cells(contrasts[loss], verdicts[loss]) if loss in contrasts else ["–"] * 6
        rows.append([*start, written_interval(mean_interval(values)), *found])
    way = "more" if larger_is_better(metric) else "less"
    margin = choice.margins.get(metric)
    equal = "" if margin is None else f" Differences below {margin:g} do not matter in practice."
    blocks: list[Block] = [
        Heading(choice.label or task),
        Text(f"{metric} on the test split; {way} is better.{equal}"),
        TextTable([name.format(metric=metric) for name in HEADER], rows),
        Bullets([_sentence(findings, metric, contrasts[loss], verdicts[loss]) for loss in losses if loss in contrasts]),
    ]
    if others:
        rows = [
            [
                grid.label(loss),
                *(
                    written_interval(mean_interval(list(findings.by_seed(task, loss, name).values())))
                    for name in others
                ),
            ]
            for loss in losses
        ]
        blocks.append(TextTable(("loss", *others), rows))
    return blocks


def written_interval(found: Interval, signed: bool = False) -> str:
    """Writes a mean with its interval.

    >>> written_interval(Interval(0.5, 0.25, 0.75))
    '0.5000 [0.2500, 0.7500]'
    >>> written_interval(Interval(0.1, float("-inf"), float("inf")), signed=True)
    '+0.1000'
    """
    form = "+.4f" if signed else ".4f"
    if math.isnan(found.value):
        return "undefined"
    if not math.isfinite(found.low):
        return format(found.value, form)
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def _cells(found: Contrast, verdict: Verdict) -> list[str]:
    counts = f"{found.wins} : {found.losses}"
    if math.isnan(found.difference.value):
        return ["–", counts, "–", "–", "–", verdict.text]
    return [
        written_interval(found.difference, signed=True),
        counts,
        f"{found.p:.2g}",
        f"{verdict.p:.2g}",
        f"{found.detectable:.4f}",
        verdict.text,
    ]


def _sentence(findings: Findings, metric: str, found: Contrast, verdict: Verdict) -> str:
    name, base = findings.grid.label(found.loss), findings.grid.label(findings.grid.baseline)
    if verdict.text == "too few seeds":
        return f"{name}: too few seeds in common with {base} to say anything."
    if verdict.text == "undefined":
        return f"{name} against {base}: {metric} is not finite in some run, so they cannot be compared."
    apart = f"{found.difference.value:+.4f} in {metric} over {found.seeds} seeds"
    if verdict.text == "uneven spread":
        return f"{name} against {base}: {apart}; {base} varies more over seeds than the other losses do: no verdict."
    if verdict.text == "no practical difference":
        return f"{name} against {base}: {apart}; there is no practical difference."
    if verdict.text == "within noise":
        return f"{name} against {base}: {apart}; within noise (least detectable: {found.detectable:.4f})."
    return f"{name} is {verdict.text} than {base}: {apart}."
