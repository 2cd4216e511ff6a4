"""The metrics of a run, whatever its tasks: each answer goes to the metrics of its own task.

Unusual: all tasks' metrics exist from the start on every process, since gathering needs all processes and one of
them may never see a chart. Names are short while there is one task ("exact_match") and carry it when there are
several ("clock/exact_match"), with the pooled "exact_match" beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from smmd_lightning.metrics.base import TASKS, AnswerMetrics
from smmd_lightning.metrics.registry import FALLBACK, metrics_for
from smmd_lightning.types import NumericExample


class MetricsByTask(nn.Module):
    """Metrics of all tasks of a run.

    Args:
        metrics: Metrics by task. None: those of all tasks declared by now. An example of a task that is not among them
            goes to those of "number"; without these it is an error.
    """

    def __init__(self, metrics: Mapping[str, AnswerMetrics] | None = None) -> None:
        super().__init__()
        self.by_task = dict(metrics or {task: metrics_for(task) for task in TASKS})
        self.metrics = nn.ModuleList(self.by_task.values())  # so that they follow the module to its device

    def update(self, predictions: Sequence[str], examples: Sequence[NumericExample]) -> None:
        """Adds answers, each to the metrics of its example's `meta["task"]`.

        Raises:
            ValueError: An example's task is not among the metrics, or its right answer is none of that task.
        """
        if len(predictions) != len(examples):
            raise ValueError(f"Got {len(predictions)} predictions for {len(examples)} examples; they must be as many.")
        parts: dict[str, tuple[list[str], list[NumericExample]]] = {}
        for prediction, example in zip(predictions, examples, strict=True):
            texts, rows = parts.setdefault(self._task(example), ([], []))
            texts.append(prediction)
            rows.append(example)
        for task, part in parts.items():
            self.by_task[task].update(*part)

    def row(self, prediction: str, example: NumericExample) -> dict[str, Any]:
        """Returns one row of the prediction file: plain values, ready for JSON."""
        metrics = self.by_task[self._task(example)]
        score = metrics.score(prediction, example)
        return {
            "id": example.id,
            "task": example.meta.get("task") or FALLBACK,
            "prompt": example.prompt,
            "truth": score.truth,
            "raw": prediction,
            "parsed": score.parsed,
            "error": score.error,
            "error_unit": metrics.unit,
            "correct": score.correct,
            "meta": example.meta,
        }

    def compute(self) -> dict[str, Tensor]:
        """Returns all metrics by name, over all processes; every process must call it. Empty without any answer."""
        values: dict[str, dict[str, Tensor]] = {}
        for task, metrics in self.by_task.items():
            if not metrics.update_called:  # torchmetrics warns of that, and processes would disagree on dtypes
                metrics.update([], [])
            computed = metrics.compute()
            if computed["samples"] > 0:
                values[task] = computed
        if len(values) == 1:
            return next(iter(values.values()))
        named = {f"{task}/{name}": value for task, found in values.items() for name, value in found.items()}
        if values:
            samples = torch.stack([found["samples"] for found in values.values()])
            exact = torch.stack([found["exact_match"] for found in values.values()])
            named |= {"exact_match": (exact * samples).sum() / samples.sum(), "samples": samples.sum()}
        return named

    def reset(self) -> None:
        """Forgets all answers."""
        for metrics in self.by_task.values():
            metrics.reset()

    def _task(self, example: NumericExample) -> str:
        task = example.meta.get("task", "")
        if task in self.by_task:
            return task
        if FALLBACK not in self.by_task:
            raise ValueError(
                f"Example {example.id!r}: meta['task'] must be one of {', '.join(self.by_task)}, got {task!r}."
            )
        return FALLBACK
