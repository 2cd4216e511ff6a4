"""Which runs there are: those that choose the weights, those that are compared, and sweeps.

Unusual: a run is named by the hash of its settings. Runs with the same settings are one run, whatever they are for, and
a changed grid never takes an old run for a new one.

One real example, the folder of a final run of SMMD with weight 0.3 and seed 2::

    runs/arithmetic/smmd/weight0.3-seed2-5f0c1d2a9b3e
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from smmd_lightning.compare.grid import Grid, Sweep
from smmd_lightning.compare.settings_files import Settings, merged

Phase = Literal["tune", "sweep", "final"]
Cell = tuple[str, str]
"""Task and loss."""


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """One training with one evaluation.

    Attributes:
        phase: What it is for.
        task: Name of the task.
        loss: Name of the loss.
        weight: Weight of the numeric loss; None for cross-entropy alone.
        seed: Its seed.
        variant: What a sweep sets, as text; empty outside sweeps.
        settings: All settings of the command line but the folder.
        checkpoint: Which checkpoint is evaluated.
    """

    phase: Phase
    task: str
    loss: str
    weight: float | None
    seed: int
    variant: str
    settings: Settings
    checkpoint: str

    @property
    def stage(self) -> Literal["validate", "test"]:
        """The evaluation: only final runs ever see the test split."""
        return "test" if self.phase == "final" else "validate"

    @cached_property
    def hash(self) -> str:
        """Names the settings."""
        text = json.dumps([self.settings, self.checkpoint], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @cached_property
    def folder(self) -> PurePosixPath:
        """Its folder, relative to the comparison's."""
        weight = "" if self.weight is None else f"weight{self.weight:g}-"
        return PurePosixPath("runs", self.task, self.loss, f"{weight}seed{self.seed}-{self.hash}")

    @property
    def title(self) -> str:
        """The run in words."""
        parts = [self.phase, self.task, self.loss, self.variant]
        parts += [] if self.weight is None else [f"weight {self.weight:g}"]
        return " ".join(part for part in [*parts, f"seed {self.seed}"] if part)


class Plan:
    """Lists the runs of a grid; experiments and losses are read once.

    Args:
        grid: The grid.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._experiments = {task: grid.experiment(task) for task in grid.tasks}
        self._losses = {loss: grid.numeric_loss(loss) for loss in grid.losses}

    @property
    def cells(self) -> list[Cell]:
        """All pairs of task and loss."""
        return [(task, loss) for task in self.grid.tasks for loss in self.grid.losses]

    def tuning(self) -> list[PlannedRun]:
        """Runs that choose the weights; none where there is nothing to choose."""
        return [
            self._run("tune", task, loss, weight, seed)
            for seed in self.grid.tune_seeds
            for task, loss in self.cells
            if len(self.grid.loss_weights(loss)) > 1
            for weight in self.grid.loss_weights(loss)
        ]

    def final(self, chosen: Mapping[Cell, float | None]) -> list[PlannedRun | None]:
        """Runs that are compared, None in place of those whose weight is not chosen yet."""
        return [
            self._run("final", *cell, chosen[cell], seed) if cell in chosen else None
            for seed in self.grid.seeds
            for cell in self.cells
            if seed in self.grid.cell_seeds(*cell)
        ]

    def sweeps(self, chosen: Mapping[Cell, float | None]) -> list[PlannedRun | None]:
        """Runs of the sweeps, None in place of those whose weight is not chosen yet."""
        return [
            self.swept(sweep, task, value, seed, chosen[task, sweep.loss]) if (task, sweep.loss) in chosen else None
            for sweep in self.grid.sweeps
            for seed in self.grid.tune_seeds
            for task in sweep.tasks or self.grid.tasks
            for value in sweep.values
        ]

    def swept(self, sweep: Sweep, task: str, value: Any, seed: int, weight: float | None) -> PlannedRun:
        """One run of a sweep."""
        return self._run("sweep", task, sweep.loss, weight, seed, {sweep.setting: value})

    def _run(
        self, phase: Phase, task: str, loss: str, weight: float | None, seed: int, settings: Settings | None = None
    ) -> PlannedRun:
        numeric_loss = self._losses[loss]
        if settings and numeric_loss is not None:
            numeric_loss = merged(numeric_loss, {"init_args": settings})
        own: Settings = {**self.grid.losses[loss].model, "numeric_loss": numeric_loss}
        if weight is not None:
            own["loss_weight"] = weight
        whole = dict(self._experiments[task])
        # Not merged: a loss of the experiment's own, or its weight, would shine through.
        whole["model"] = {
            k: v for k, v in whole.get("model", {}).items() if k not in ("numeric_loss", "loss_weight")
        } | own
        variant = " ".join(f"{name}={json.dumps(value)}" for name, value in (settings or {}).items())
        return PlannedRun(
            phase, task, loss, weight, seed, variant, {"seed_everything": seed, **whole}, self.grid.checkpoint
        )


def share(runs: Iterable[PlannedRun | None], number: int, total: int) -> list[PlannedRun | None]:
    """Every `total`-th run, starting at the `number`-th (from 1); a run's place does not depend on what is known."""
    return [run for place, run in enumerate(runs) if place % total == number - 1]


def known(runs: Iterable[PlannedRun | None]) -> Iterator[PlannedRun]:
    """Runs that can start."""
    return (run for run in runs if run is not None)
