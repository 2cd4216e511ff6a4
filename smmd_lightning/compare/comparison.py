"""One comparison from its grid to its report: tune, choose, run, collect.

Unusual: nothing is remembered between the steps; each asks the files which runs are finished.

One real example::

    comparison = Comparison("configs/compare/quick.yaml", "comparisons/quick")
    comparison.run(Slots(jobs=2))
    comparison.report()
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from smmd_lightning.compare.collecting import Choice, choose_weights, read_result, read_results
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.hypotheses import keep_hypotheses
from smmd_lightning.compare.planning import Cell, Plan, PlannedRun, known, share
from smmd_lightning.compare.running import Failure, Runner, Slots


class Comparison:
    """A grid and the folder where its runs lie.

    Args:
        config: The grid's file.
        out: Folder of the runs and the report.
        shard: Which part of the runs to run, (i, n) with i from 1.

    Raises:
        ValueError: The grid is wrong.
    """

    def __init__(self, config: str | Path, out: str | Path, shard: tuple[int, int] = (1, 1)) -> None:
        self.plan = Plan(load_grid(config))
        self.out = Path(out)
        self.shard = shard

    def choices(self) -> dict[Cell, Choice]:
        """Returns the weights chosen, as far as tuning is finished."""
        return choose_weights(self.plan, read_results(self.plan.tuning(), self.out))

    def run(self, slots: Slots) -> tuple[list[Failure], int]:
        """Runs this shard's part: tuning, then what is compared and the sweeps.

        Returns:
            The runs that failed, and how many could not start because their weight is not chosen yet.

        Raises:
            ValueError: The folder was begun with other hypotheses.
        """
        keep_hypotheses(self.plan.grid.hypotheses, self.plan.grid.losses, self.out)
        runner = Runner(self.plan.grid, self.out, slots)
        failures = runner.run(list(known(share(self.plan.tuning(), *self.shard))))
        later = share(self._later(self.choices()), *self.shard)
        failures += runner.run(list(known(later)))
        return failures, later.count(None)

    def report(self) -> list[Path]:
        """Writes table and report of what is finished, of all shards.

        Returns:
            The files to look at.
        """
        from smmd_lightning.compare.reporting import Report  # heavy; runs start without it

        choices = self.choices()
        runs: list[PlannedRun | None] = [*self.plan.tuning(), *self._later(choices)]
        added = keep_hypotheses(self.plan.grid.hypotheses, self.plan.grid.losses, self.out)
        results = read_results(runs, self.out)
        return Report(self.plan, results, choices, self.out, planned=len(runs), added=added).write()

    def listing(self, jobs: int) -> list[str]:
        """Lists this shard's runs, whether they are finished, and how long the others may take."""
        later = self._later(self.choices())
        everything: list[PlannedRun | None] = [*share(self.plan.tuning(), *self.shard), *share(later, *self.shard)]
        runs = list(known(everything))
        results = [read_result(run, self.out) for run in runs]
        lines = []
        for run, result in zip(runs, results, strict=True):
            begun = (self.out / run.folder).exists()
            state = "finished" if result else "begun" if begun else "to do"
            lines.append(f"{state:9}{run.title}  {run.folder}")
        waiting = len(everything) - len(runs)
        done = [result for result in results if result]
        left = len(everything) - len(done)
        lines.append(
            f"{len(everything)} runs: {len(done)} finished, {left} to do"
            + (f", {waiting} of them not listed since their weight is not chosen yet" if waiting else "")
        )
        if done and left:
            hours = left * sum(result.seconds for result in done) / len(done) / jobs / 3600
            lines.append(f"about {hours:.1f} hours with {jobs} side by side, going by the finished ones")
        return lines

    def _later(self, choices: Mapping[Cell, Choice]) -> list[PlannedRun | None]:
        weights = {cell: choice.weight for cell, choice in choices.items()}
        return [*self.plan.final(weights), *self.plan.sweeps(weights)]
