"""Reads what finished runs left behind: results, the weights that they choose, and one tidy table.

One real example, a row of `results.csv`::

    phase,task,loss,variant,weight,seed,split,metric,value,run,hash
    final,arithmetic,smmd,,0.3,2,test,exact_match,0.614,runs/arithmetic/smmd/weight0.3-seed2-5f0c1d2a9b3e,5f0c1d2a9b3e
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smmd_lightning.compare.one_run import result_file
from smmd_lightning.compare.planning import Cell, Plan, PlannedRun, known
from smmd_lightning.metrics import larger_is_better

SPLITS = {"validate": "validation", "test": "test"}
COLUMNS = ("phase", "task", "loss", "variant", "weight", "seed", "split", "metric", "value", "run", "hash")


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        run: Which.
        metrics: Metrics of its evaluation, without `val/` and `test/`.
        seconds: Wall-clock time of the process that finished it.
    """

    run: PlannedRun
    metrics: dict[str, float]
    seconds: float

    def value(self, metric: str) -> float:
        """Returns a metric.

        Raises:
            ValueError: There is no such metric.
        """
        if metric not in self.metrics:
            raise ValueError(
                f"task {self.run.task}: there is no metric {metric!r}; there are {', '.join(self.metrics) or 'none'}."
            )
        return self.metrics[metric]


@dataclass(frozen=True)
class Choice:
    """The weight chosen for a loss on a task.

    Attributes:
        weight: Which; None for cross-entropy alone.
        scores: Mean of the deciding metric over the tuning seeds, on the validation split, by weight; empty where there
            was nothing to choose.
    """

    weight: float | None
    scores: dict[float, float]

    @property
    def at_the_edge(self) -> bool:
        """Whether it is the smallest or the largest of several weights, so that a better one may lie outside."""
        return len(self.scores) > 1 and self.weight in (min(self.scores), max(self.scores))


def read_result(run: PlannedRun, out: Path) -> Result | None:
    """Returns the result of a run; None where it is not finished, or finished with other settings."""
    file = result_file(out / run.folder, run.stage)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise ValueError(f"{file}: not JSON ({error}). Remove it, and the run is evaluated again.") from error
    if found["hash"] != run.hash:
        return None
    return Result(run, found["metrics"], found["seconds"])


def read_results(runs: Iterable[PlannedRun | None], out: Path) -> list[Result]:
    """Returns the results of those runs that are finished."""
    return [result for run in known(runs) if (result := read_result(run, out)) is not None]


def choose_weights(plan: Plan, tuned: Sequence[Result]) -> dict[Cell, Choice]:
    """Chooses a weight for each loss and task: the best mean over the tuning seeds, on the validation split.

    Of equally good weights the smallest is taken. A cell whose tuning is not complete has no choice yet.

    Raises:
        ValueError: The deciding metric does not exist.
    """
    values: dict[tuple[Cell, float], list[float]] = {}
    for result in tuned:
        run = result.run
        assert run.weight is not None
        metric = plan.grid.tasks[run.task].metrics[0]
        values.setdefault(((run.task, run.loss), run.weight), []).append(result.value(metric))
    choices = {}
    for cell in plan.cells:
        weights = plan.grid.loss_weights(cell[1])
        if len(weights) == 1:
            choices[cell] = Choice(weights[0], {})
            continue
        found = {weight: values.get((cell, weight), []) for weight in weights if weight is not None}
        if any(len(scores) < len(plan.grid.tune_seeds) for scores in found.values()):
            continue
        means = {weight: sum(scores) / len(scores) for weight, scores in found.items()}
        sign = 1 if larger_is_better(plan.grid.tasks[cell[0]].metrics[0]) else -1
        # A metric that is undefined (no answer had a number) is worse than any value.
        ranked = {w: -math.inf if math.isnan(mean) else sign * mean for w, mean in means.items()}
        choices[cell] = Choice(max(ranked, key=lambda weight: (ranked[weight], -weight)), means)
    return choices


def table_text(results: Iterable[Result]) -> str:
    """Returns all results as CSV, one row per run and metric, in the order of the plan."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        run = result.run
        start = (run.phase, run.task, run.loss, run.variant, "" if run.weight is None else f"{run.weight:g}", run.seed)
        for metric, value in sorted(result.metrics.items()):
            writer.writerow((*start, SPLITS[run.stage], metric, repr(value), str(run.folder), run.hash))
    return text.getvalue()
