"""The metrics of a run, whatever its tasks: each answer goes to the metrics of its own task.

Unusual: all tasks' metrics exist from the start on every process, since gathering needs all processes and one of
them may never see a chart. Names are short while there is one task ("exact_match") and carry it when there are
several ("clock/exact_match"), with the pooled "exact_match", "cut_off" and "samples" beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torchmetrics
from torch import Tensor, nn

from smmd_lightning.metrics.base import TASKS, AnswerMetrics
from smmd_lightning.metrics.distribution import DistributionMetrics
from smmd_lightning.metrics.laws import Law, add_law, law_of
from smmd_lightning.metrics.registry import FALLBACK, metrics_for
from smmd_lightning.types import NumericExample


class MetricsByTask(nn.Module):
    """Metrics of all tasks of a run.

    Args:
        metrics: Metrics by task. None: those of all tasks declared by now. An example of a task that is not among them
            goes to those of "number"; without these it is an error.
        with_laws: Whether `update_laws` will be called, so that `compute` gives the scores of laws too.
    """

    def __init__(self, metrics: Mapping[str, AnswerMetrics] | None = None, with_laws: bool = False) -> None:
        super().__init__()
        self.by_task = dict(metrics or {task: metrics_for(task) for task in TASKS})
        self.metrics = nn.ModuleList(self.by_task.values())  # so that they follow the module to its device
        self.laws = nn.ModuleList([DistributionMetrics() for _ in self.by_task] if with_laws else [])

    def update(
        self,
        predictions: Sequence[str],
        examples: Sequence[NumericExample],
        cut_off: Sequence[bool] | None = None,
    ) -> None:
        """Adds answers, each to the metrics of its example's `meta["task"]`; arguments as in `AnswerMetrics.update`.

        Raises:
            ValueError: An example's task is not among the metrics, or its right answer is none of that task.
        """
        if len(predictions) != len(examples):
            raise ValueError(f"Got {len(predictions)} predictions for {len(examples)} examples; they must be as many.")
        parts: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            parts.setdefault(self._task(example), []).append(number)
        for task, numbers in parts.items():
            self.by_task[task].update(
                [predictions[number] for number in numbers],
                [examples[number] for number in numbers],
                None if cut_off is None else [cut_off[number] for number in numbers],
            )

    def law(self, example: NumericExample, texts: Sequence[str], probabilities: Sequence[float]) -> Law | None:
        """Returns what the likeliest answers say about the value asked for, see `laws.law_of`."""
        return law_of(self.by_task[self._task(example)], example, texts, probabilities)

    def update_laws(
        self, laws: Sequence[Law | None], examples: Sequence[NumericExample], greedy: Sequence[str]
    ) -> None:
        """Adds laws to their scores.

        Args:
            laws: What `law` returned for each example.
            examples: The examples.
            greedy: What greedy decoding wrote for each.
        """
        for law, example, text in zip(laws, examples, greedy, strict=True):
            task = self._task(example)
            scores = self.laws[list(self.by_task).index(task)]
            assert isinstance(scores, DistributionMetrics)
            add_law(scores, law, example, text, self.by_task[task])

    def row(self, prediction: str, example: NumericExample, cut_off: bool | None = None) -> dict[str, Any]:
        """Returns one row of the prediction file: plain values, ready for JSON.

        Args:
            prediction: What the model wrote.
            example: The example it answered.
            cut_off: Whether the limit of tokens ended the answer; the row says so where it is known.
        """
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
            **({} if cut_off is None else {"cut_off": cut_off}),
            "meta": example.meta,
        }

    def compute(self) -> dict[str, Tensor]:
        """Returns all metrics by name, over all processes; every process must call it. Empty without any answer."""
        values: dict[str, dict[str, Tensor]] = {}
        for place, (task, metrics) in enumerate(self.by_task.items()):
            if not metrics.update_called:  # torchmetrics warns of that, and processes would disagree on dtypes
                metrics.update([], [])
            computed = metrics.compute()
            if len(self.laws):
                scores = self.laws[place]
                assert isinstance(scores, DistributionMetrics)
                if not scores.update_called:
                    scores.update(torch.zeros(0, 1), torch.zeros(0, 1), torch.zeros(0))
                believed = scores.compute()
                if not believed["without_distribution"].isnan():
                    computed |= believed
            if computed["samples"] > 0:
                values[task] = computed
        if len(values) == 1:
            return next(iter(values.values()))
        named = {f"{task}/{name}": value for task, found in values.items() for name, value in found.items()}
        if values:
            for name in ("exact_match", "cut_off"):
                having = [found for found in values.values() if name in found]
                if having:
                    samples = torch.stack([found["samples"] for found in having])
                    share = torch.stack([found[name] for found in having])
                    named[name] = (share * samples).sum() / samples.sum()
            named["samples"] = torch.stack([found["samples"] for found in values.values()]).sum()
        return named

    def reset(self) -> None:
        """Forgets all answers."""
        for metrics in [*self.metrics, *self.laws]:
            assert isinstance(metrics, torchmetrics.Metric)
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
