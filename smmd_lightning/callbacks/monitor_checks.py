"""Whether validation will log what callbacks and `model.watch` wait for.

One real example: `monitor: val/exact_mach` on a task of numbers is refused with "Do you mean 'val/exact_match'?".
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import torch

LOSSES = ("val/loss", "val/ce", "val/numeric")
"""What validation logs without generating answers."""


def check_monitors(trainer: Any, module: Any) -> None:
    """Refuses callbacks that wait for a metric which no validation will give.

    Raises:
        ValueError: A monitored metric is a misspelt one, or needs generated answers where `generation_limit` is 0.
    """
    without = getattr(trainer.datamodule, "generation_limit", None) == 0
    generated = _metrics_of_answers(module)
    for callback in trainer.callbacks:
        monitor = getattr(callback, "monitor", None)
        if not isinstance(monitor, str):
            continue
        if monitor in generated and without:
            raise ValueError(
                f"{type(callback).__name__} waits for {monitor!r}, a metric of generated answers, but "
                "data.generation_limit=0 generates none. Raise data.generation_limit, or monitor one of "
                f"{', '.join(LOSSES)} (--checkpoint.monitor=val/loss)."
            )
        known = {*LOSSES, *generated}
        # What is like none of them may be logged by somebody's own callback or module.
        near = get_close_matches(monitor.removeprefix("val/"), [name[4:] for name in known], n=1, cutoff=0.8)
        if generated and monitor not in known and "/by_" not in monitor and near:
            raise ValueError(
                f"{type(callback).__name__} waits for {monitor!r}, which validation does not log. "
                f"Do you mean 'val/{near[0]}'? There are {', '.join(sorted(known))}."
            )


def check_watched(module: Any) -> None:
    """Refuses a misspelt `watch`, which would show nothing.

    Raises:
        ValueError: No metric of generated answers has that name; lists those that are.
    """
    watch, names = getattr(module, "watch", None), {name.rsplit("/", 1)[-1] for name in _metrics_of_answers(module)}
    if watch is not None and names and watch.rsplit("/", 1)[-1] not in names:  # "by_kind/addition/exact_match" is one
        raise ValueError(
            f"model.watch={watch!r} is no metric of generated answers; there are {', '.join(sorted(names))}."
        )


def _metrics_of_answers(module: Any) -> set[str]:
    by_task = getattr(getattr(module, "metrics", None), "by_task", {})
    names = {task: set(metrics.summarise(torch.zeros(0, metrics.width))) for task, metrics in by_task.items()}
    return {f"val/{prefix}{name}" for task, found in names.items() for name in found for prefix in ("", f"{task}/")}


def check_monitored(trainer: Any) -> None:
    """Refuses callbacks that wait for a metric which validation has not logged.

    Args:
        trainer: The trainer, a validation just made (the sanity check will do).

    Raises:
        ValueError: A monitored metric is not there; lists those that are.
    """
    found = sorted(trainer.callback_metrics)
    for callback in trainer.callbacks:
        monitor = getattr(callback, "monitor", None)
        if isinstance(monitor, str) and monitor.startswith("val/") and monitor not in found:
            known = ", ".join(name for name in found if name.startswith("val/"))
            raise ValueError(f"{type(callback).__name__} waits for {monitor!r}, but validation logs only {known}.")
