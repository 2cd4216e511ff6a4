"""How much the weight of a loss and its settings matter, on the validation split: tables and plots.

One real example, a row of the table of weights::

    | clock | SMMD | 0.4120 | 0.4480 | 0.4310 | 0.3 |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from smmd_lightning.compare import figures as plots
from smmd_lightning.compare.blocks import Block, Heading, Text, TextTable
from smmd_lightning.compare.collecting import Choice, Result
from smmd_lightning.compare.grid import Grid
from smmd_lightning.compare.planning import Cell, Plan

Draw = Callable[[str, str, bytes | None], list[Block]]


def weights_section(
    grid: Grid, results: Sequence[Result], choices: Mapping[Cell, Choice], picture: Draw
) -> list[Block]:
    """Says how each weight was chosen; nothing where none was tuned.

    Args:
        grid: What is compared.
        results: All finished runs.
        choices: The weights chosen.
        picture: Keeps a plot (name, title, PNG or None) and gives the blocks that show it.
    """
    tuned = {cell: choice for cell, choice in choices.items() if choice.scores}
    if not tuned:
        return []
    weights = sorted({weight for choice in tuned.values() for weight in choice.scores})
    rows = []
    for (task, loss), choice in tuned.items():
        scores = [f"{choice.scores[w]:.4f}" if w in choice.scores else "" for w in weights]
        edge = ", at the edge of the list" if choice.at_the_edge else ""
        rows.append([task, grid.label(loss), *scores, f"{choice.weight:g}{edge}"])
    blocks: list[Block] = [
        Heading("Weights"),
        Text("Deciding metric of each task on the validation split, mean over the tuning seeds, by weight."),
        TextTable(("task", "loss", *(f"{weight:g}" for weight in weights), "chosen"), rows),
    ]
    for task, choice in grid.tasks.items():
        if not plots.available():
            break
        losses = [loss for (of, loss) in tuned if of == task]
        points = {grid.label(loss): _by_weight(results, task, loss, grid.tasks[task].metrics[0]) for loss in losses}
        chosen = {grid.label(loss): tuned[task, loss].weight for loss in losses}
        content = plots.weight_sensitivity(choice.metrics[0], points, chosen)
        blocks += picture(f"{task}-weight", f"{task}: sensitivity to the weight", content)
    return blocks


def sweeps_section(plan: Plan, results: Sequence[Result], choices: Mapping[Cell, Choice], picture: Draw) -> list[Block]:
    """Shows how much the settings matter that the grid's sweeps name.

    Args:
        plan: Which runs there are.
        results: All finished runs.
        choices: The weights chosen.
        picture: Keeps a plot (name, title, PNG or None) and gives the blocks that show it.
    """
    grid = plan.grid
    blocks: list[Block] = []
    finished = {(result.run.folder, result.run.stage): result for result in results}
    for number, sweep in enumerate(grid.sweeps, start=1):
        texts = [_setting(value) for value in sweep.values]
        points: dict[str, list[tuple[float, float, float, float]]] = {}
        for task in sweep.tasks or grid.tasks:
            metric = grid.tasks[task].metrics[0]
            for place, value in enumerate(sweep.values):
                if (task, sweep.loss) not in choices:
                    continue
                weight = choices[task, sweep.loss].weight
                runs = [plan.swept(sweep, task, value, seed, weight) for seed in grid.tune_seeds]
                found = [finished[run.folder, run.stage] for run in runs if (run.folder, run.stage) in finished]
                if found:
                    point = _mean_and_range(place, [result.value(metric) for result in found])
                    points.setdefault(task, []).append(point)
        if not points:
            continue
        name = f"{grid.label(sweep.loss)}: {sweep.setting}"
        rows = []
        for task, found_points in points.items():
            means = {int(place): f"{mean:.4f}" for place, mean, _, _ in found_points}
            rows.append([task, *(means.get(place, "") for place in range(len(texts)))])
        blocks += [Heading(f"Sensitivity to {name}"), TextTable(("task", *texts), rows)]
        blocks.append(Text("Mean over the tuning seeds of each task's deciding metric, on the validation split."))
        if plots.available():
            metrics = {grid.tasks[task].metrics[0] for task in points}
            shown = metrics.pop() if len(metrics) == 1 else "deciding metric"
            content = plots.setting_sensitivity(shown, sweep.setting, texts, points)
            blocks += picture(f"sweep{number}-{sweep.loss}-{sweep.setting}", name, content)
    return blocks


def _by_weight(results: Sequence[Result], task: str, loss: str, metric: str) -> list[tuple[float, float, float, float]]:
    values: dict[float, list[float]] = {}
    for result in results:
        run = result.run
        if run.phase == "tune" and (run.task, run.loss) == (task, loss) and run.weight is not None:
            values.setdefault(run.weight, []).append(result.value(metric))
    return [_mean_and_range(weight, found) for weight, found in sorted(values.items())]


def _mean_and_range(x: float, values: Sequence[float]) -> tuple[float, float, float, float]:
    return x, sum(values) / len(values), min(values), max(values)


def _setting(value: object) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return "off" if value is None else str(value)
