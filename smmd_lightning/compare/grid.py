"""What is compared: the grid's file, checked, with every file that it names read in.

Unusual: nothing of the files is looked up later. A task is its experiment file with all nested files read and merged,
so a run's settings are one plain mapping, and two runs are the same run exactly when these mappings are equal.

One real example, the smallest grid::

    tasks:
      arithmetic: {config: tasks/arithmetic.yaml}
    losses:
      ce: {label: CE}
      smmd: {config: ../loss/smmd.yaml, label: SMMD}
    seeds: [1, 2, 3]
    tune_seeds: [101]
    weights: [0.1, 0.3, 1.0]
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentError
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from jsonargparse import ArgumentParser

from smmd_lightning.compare.hypotheses import Hypothesis
from smmd_lightning.compare.settings_files import Settings, merged, read_mapping, read_settings
from smmd_lightning.metrics import metric_facts

Kind = TypeVar("Kind")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass
class TaskChoice:
    """A task: an experiment of the command line, without its loss.

    Attributes:
        config: Experiment file, relative to the grid's.
        label: How the report calls it. Empty: its name in the grid.
        metrics: Metrics that the report shows, without `val/` and `test/`; the first one decides.
        margins: By metric, the difference below which two losses are the same in practice.
        seeds: The only seeds of the grid's that this task uses. None: all.
        overrides: Settings merged over the experiment's.
    """

    config: str
    label: str = ""
    metrics: list[str] = field(default_factory=lambda: ["exact_match"])
    margins: dict[str, float] = field(default_factory=dict)
    seeds: list[int] | None = None
    overrides: dict[str, Any] = field(default_factory=dict)


@dataclass
class LossChoice:
    """A numeric loss.

    Attributes:
        config: File with its class path and settings, relative to the grid's. None: cross-entropy alone.
        label: How the report calls it. Empty: its name in the grid.
        weights: Weights to choose from, instead of the grid's.
        seeds: The only seeds of the grid's that this loss uses. None: all.
        overrides: Settings merged over the file's `init_args`.
        model: Further settings of the model that go with it, as `{weight_schedule: {warmup_steps: 100}}`.
    """

    config: str | None = None
    label: str = ""
    weights: list[float] | None = None
    seeds: list[int] | None = None
    overrides: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)


@dataclass
class Sweep:
    """How much one setting of a loss matters; looked at on the validation split, with the weight chosen for the loss.

    Attributes:
        loss: Name of the loss in the grid.
        setting: One of its `init_args`.
        values: What it is set to.
        tasks: The only tasks where. None: all.
    """

    loss: str
    setting: str
    values: list[Any]
    tasks: list[str] | None = None


@dataclass
class Grid:
    """Everything that is compared.

    Attributes:
        tasks: By name.
        losses: By name.
        seeds: Of the final runs, whose test answers are compared.
        baseline: Name of the loss that the others are compared with.
        weights: Weights of the numeric loss to choose from; a single one is taken without tuning.
        tune_seeds: Of the runs that choose the weight on the validation split; better none of `seeds`.
        sweeps: Settings to look at beside the weight.
        hypotheses: Claims, written to the folder with a hash before the first run; see `compare.hypotheses`.
        overrides: Settings merged over every experiment's.
        checkpoint: Which checkpoint answers: `last`, or `best` on the validation split.
        keep_checkpoints: Whether checkpoints of finished runs stay.
        program: What runs a run, followed by its folder; `{python}` stands for this Python. Several processes a run:
            `[torchrun, --nproc-per-node=2, -m, smmd_lightning.compare.one_run]`. None: each run is a fork of a
            server that has loaded all libraries once; without GPUs only.
        name: Title of the report.
    """

    tasks: dict[str, Any]
    losses: dict[str, Any]
    seeds: list[int]
    baseline: str = "ce"
    weights: list[float] = field(default_factory=lambda: [0.1, 0.3, 1.0])
    tune_seeds: list[int] = field(default_factory=list)
    sweeps: list[Any] = field(default_factory=list)
    hypotheses: list[Any] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)
    checkpoint: Literal["last", "best"] = "last"
    keep_checkpoints: bool = True
    program: list[str] | None = field(default_factory=lambda: ["{python}", "-m", "smmd_lightning.compare.one_run"])
    name: str = "Comparison of losses"
    folder: str = "."

    def label(self, loss: str) -> str:
        """How the report calls a loss."""
        return str(self.losses[loss].label or loss)

    def cell_seeds(self, task: str, loss: str) -> list[int]:
        """Seeds of the final runs of a task and a loss."""
        allowed = [only for only in (self.tasks[task].seeds, self.losses[loss].seeds) if only is not None]
        return [seed for seed in self.seeds if all(seed in only for only in allowed)]

    def loss_weights(self, loss: str) -> list[float | None]:
        """Weights that a loss may get, ascending; cross-entropy alone has none."""
        if self.losses[loss].config is None:
            return [None]
        given = self.losses[loss].weights
        return [*sorted(self.weights if given is None else given)]

    def experiment(self, task: str) -> Settings:
        """All settings of a task but the loss, the seed and the folder."""
        choice = self.tasks[task]
        settings = read_settings(Path(self.folder) / choice.config)
        settings = merged(merged(settings, self.overrides), choice.overrides)
        for name in ("run_dir", "seed_everything", "ckpt_path", "resume"):
            settings.pop(name, None)
        return settings

    def numeric_loss(self, loss: str) -> Settings | None:
        """Class path and settings of a loss."""
        choice = self.losses[loss]
        if choice.config is None:
            return None
        return merged(read_settings(Path(self.folder) / choice.config), {"init_args": choice.overrides})


def load_grid(file: str | Path) -> Grid:
    """Reads a grid's file.

    Raises:
        ValueError: The file or one that it names is missing, a key is unknown, or the grid contradicts itself.
    """
    file = Path(file)
    found = read_mapping(file)
    grid = _typed(Grid, found, str(file))
    grid.folder = str(file.parent)
    grid.tasks = {name: _typed(TaskChoice, given, f"{file}, task {name}") for name, given in grid.tasks.items()}
    grid.losses = {name: _typed(LossChoice, given or {}, f"{file}, loss {name}") for name, given in grid.losses.items()}
    grid.sweeps = [_typed(Sweep, given, f"{file}, sweeps") for given in grid.sweeps]
    grid.hypotheses = [_typed(Hypothesis, given, f"{file}, hypotheses") for given in grid.hypotheses]
    _check(grid, file)
    return grid


def _typed(kind: type[Kind], given: Any, where: str) -> Kind:
    """Makes a dataclass of a mapping, types checked; unlike jsonargparse, an unknown key is always an error."""
    if not isinstance(given, dict):
        raise ValueError(f"{where}: must be a mapping of settings, got {given!r}.")
    own = [item for item in fields(kind) if item.name != "folder"]  # type: ignore[arg-type]
    unknown = sorted(set(given) - {item.name for item in own})
    needed = {item.name for item in own if item.default is MISSING and item.default_factory is MISSING}
    if unknown or needed - set(given):
        problem = f"unknown {', '.join(unknown)}" if unknown else f"missing {', '.join(sorted(needed - set(given)))}"
        raise ValueError(f"{where}: {problem}; settings are {', '.join(item.name for item in own)}.")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(kind)
    try:
        return kind(**parser.parse_object(given).as_dict())
    except ArgumentError as error:
        raise ValueError(f"{where}: {error}") from error


def _check(grid: Grid, file: Path) -> None:
    for kind, names in (("task", grid.tasks), ("loss", grid.losses)):
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{file}: a {kind} is named {name!r}; names are letters, digits, _ . and -.")
    if grid.baseline not in grid.losses:
        raise ValueError(f"{file}: baseline is {grid.baseline!r}, which is none of {', '.join(grid.losses)}.")
    labels = [grid.label(loss) for loss in grid.losses]
    if len(set(labels)) < len(labels):
        raise ValueError(f"{file}: two losses have the same label; labels are {', '.join(labels)}.")
    for loss in grid.losses:
        weights = grid.loss_weights(loss)
        if not weights or any(weight is not None and weight <= 0 for weight in weights):
            raise ValueError(f"{file}, loss {loss}: weights must be one or more numbers above 0, got {weights}.")
        if len(weights) > 1 and not grid.tune_seeds:
            raise ValueError(f"{file}, loss {loss}: choosing among {len(weights)} weights needs tune_seeds.")
        grid.numeric_loss(loss)
    for task, choice in grid.tasks.items():
        if not choice.metrics:
            raise ValueError(f"{file}, task {task}: metrics must name at least one metric.")
        try:
            metric_facts(choice.metrics[0])
        except ValueError as error:
            raise ValueError(f"{file}, task {task}: {error}") from error
        for metric, margin in choice.margins.items():
            if not 0 < margin < math.inf:
                raise ValueError(
                    f"{file}, task {task}: the margin of {metric} must be above 0 and finite, got {margin}."
                )
        grid.experiment(task)
    for sweep in grid.sweeps:
        missing = ({sweep.loss} - set(grid.losses)) | (set(sweep.tasks or ()) - set(grid.tasks))
        if missing or grid.losses[sweep.loss].config is None or not grid.tune_seeds:
            raise ValueError(
                f"{file}: a sweep needs a numeric loss and tasks of this grid, and tune_seeds; got {sweep.loss!r} on "
                f"{sweep.tasks or 'all tasks'}, tune_seeds {grid.tune_seeds}."
            )
    for claim in grid.hypotheses:
        metrics = {metric for choice in grid.tasks.values() for metric in choice.metrics}
        unknown = (
            (set(claim.contrast) - set(grid.losses))
            | ({claim.metric} - metrics)
            | (set(claim.tasks or ()) - set(grid.tasks))
        )
        if unknown:
            raise ValueError(
                f"{file}: a hypothesis names {', '.join(sorted(unknown))}, "
                "which is no loss, metric or task of this grid."
            )
    for name, seeds in (("seeds", grid.seeds), ("tune_seeds", grid.tune_seeds)):
        if len(set(seeds)) < len(seeds):
            raise ValueError(f"{file}: {name} names a seed twice: {seeds}.")
    if not grid.seeds:
        raise ValueError(f"{file}: seeds must name at least one seed.")
