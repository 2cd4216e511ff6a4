"""What the final runs of a comparison say: values by task, loss and seed, and the verdicts on them.

One real example, from a table that a finished comparison left behind::

    findings = Findings(load_grid("configs/compare/quick.yaml"), read_values(table))
    findings.verdicts["clock"]["smmd"].text       # 'within noise'
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from smmd_lightning.compare.collecting import Result
from smmd_lightning.compare.grid import Grid
from smmd_lightning.compare.inference import Contrast, Verdict, compare_task, judge
from smmd_lightning.compare.planning import Cell
from smmd_lightning.metrics import larger_is_better

Metrics = Mapping[str, float]
FinalValues = Mapping[Cell, Mapping[int, Metrics]]
"""Metrics of the final runs by task and loss, and by seed."""


class Findings:
    """The final runs of a grid, compared.

    Args:
        grid: What is compared.
        values: Metrics of the final runs that are finished.
    """

    def __init__(self, grid: Grid, values: FinalValues) -> None:
        self.grid, self.values = grid, values

    def losses(self, task: str) -> list[str]:
        """The losses that have final runs of a task, the baseline first."""
        found = [loss for loss in self.grid.losses if (task, loss) in self.values]
        return sorted(found, key=lambda loss: loss != self.grid.baseline)

    def by_seed(self, task: str, loss: str, metric: str) -> dict[int, float]:
        """A metric by seed; a metric that only other runs of the task have is undefined.

        Raises:
            ValueError: No run of the task has it.
        """
        runs = self.values[task, loss]
        if not any(metric in found for found in runs.values()):
            of_task = (found for (of, _), others in self.values.items() if of == task for found in others.values())
            names = {name for found in of_task for name in found}
            if metric not in names:
                raise ValueError(
                    f"task {task}: there is no metric {metric!r}; there are {', '.join(sorted(names)) or 'none'}."
                )
        return {seed: found.get(metric, math.nan) for seed, found in runs.items()}

    def compare(
        self, task: str, metric: str, against: str | None = None, among: Collection[str] | None = None
    ) -> list[Contrast]:
        """Compares the losses of a task.

        Args:
            task: Name of the task.
            metric: Which metric.
            against: The loss that they are compared with. None: the grid's baseline.
            among: The only losses that are compared. None: all.
        """
        values = {loss: self.by_seed(task, loss, metric) for loss in self.losses(task)}
        margin = self.grid.tasks[task].margins.get(metric)
        return compare_task(values, against or self.grid.baseline, larger_is_better(metric), margin, among)

    @cached_property
    def contrasts(self) -> dict[str, list[Contrast]]:
        """Every loss against the baseline in the deciding metric, by task."""
        tasks = [task for task in self.grid.tasks if self.losses(task)]
        return {task: self.compare(task, self.grid.tasks[task].metrics[0]) for task in tasks}

    @cached_property
    def verdicts(self) -> dict[str, dict[str, Verdict]]:
        """Verdicts on `contrasts`, by task and loss."""
        return judge(self.contrasts)


def final_values(results: Iterable[Result]) -> dict[Cell, dict[int, Metrics]]:
    """Sorts the results of final runs by task and loss, and by seed."""
    values: dict[Cell, dict[int, Metrics]] = {}
    for result in results:
        if result.run.phase == "final":
            values.setdefault((result.run.task, result.run.loss), {})[result.run.seed] = result.metrics
    return values


def read_values(table: str) -> dict[Cell, dict[int, dict[str, float]]]:
    """Reads the metrics of the final runs from the text of a comparison's `results.csv`."""
    values: dict[Cell, dict[int, dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        if row["phase"] == "final":
            runs = values.setdefault((row["task"], row["loss"]), {})
            runs.setdefault(int(row["seed"]), {})[row["metric"]] = float(row["value"])
    return values
