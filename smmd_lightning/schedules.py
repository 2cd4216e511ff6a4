"""Schedules of the learning rate and of the numeric loss's weight, for runs whose length the trainer knows.

One real example, a numeric loss that comes in over 100 steps and leaves over the last half of the run::

    model:
      loss_weight: 0.3
      weight_schedule: {warmup_steps: 100, decay: linear, decay_share: 0.5}
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from smmd_lightning.compat.of_torch import SteppedSchedule

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

Decay = Literal["linear", "cosine", "constant"]


@dataclass(frozen=True)
class WarmUpAndDecay:
    """Linear warm-up, then decay to `floor` over the rest of the run, as a share of the full value.

    Attributes:
        warmup_steps: Optimizer steps until the full value.
        decay: Shape of the way down; `constant` stays up.
        decay_share: Over which last share of the steps after warm-up it goes down; before, it stays up.
        floor: Where the decay ends, as a share of the full value.

    Raises:
        ValueError: A setting is out of its range.
    """

    warmup_steps: int = 0
    decay: Decay = "cosine"
    decay_share: float = 1.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}.")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must lie between 0 and 1, got {self.floor}.")
        if not 0 < self.decay_share <= 1:
            raise ValueError(f"decay_share must be above 0 and at most 1, got {self.decay_share}.")
        if self.decay not in ("linear", "cosine", "constant"):
            raise ValueError(f"decay must be linear, cosine or constant, got {self.decay!r}.")

    def factor(self, step: int, total_steps: int | None) -> float:
        """Returns the share of the full value at optimizer step `step` (0-based) of `total_steps` (None: unknown).

        >>> [WarmUpAndDecay(1, "linear").factor(step, 5) for step in range(6)]
        [0.5, 1.0, 0.75, 0.5, 0.25, 0.0]
        """
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.decay == "constant" or total_steps is None:
            return 1.0
        passed = min(1.0, (step - self.warmup_steps) / max(1, total_steps - self.warmup_steps))
        done = max(0.0, (passed - (1 - self.decay_share)) / self.decay_share)
        left = 1 - done if self.decay == "linear" else 0.5 * (1 + math.cos(math.pi * done))
        return self.floor + (1 - self.floor) * left


def planned_steps(trainer: Trainer) -> int | None:
    """Returns the optimizer steps that a training will make, None where nothing but the clock ends it."""
    steps = trainer.estimated_stepping_batches
    return None if math.isinf(steps) else int(steps)


def scheduled(optimizer: Optimizer, make: Callable[[Optimizer], Any], trainer: Trainer) -> dict[str, Any]:
    """Returns what `configure_optimizers` must: the optimizer, and its schedule per optimizer step.

    Args:
        optimizer: The optimizer.
        make: Makes its schedule. One that waits for a metric is stepped after each validation, by `step_plateaus`.
        trainer: The trainer, which knows how many steps there will be.
    """
    scheduler = make(optimizer)
    if isinstance(scheduler, ReduceLROnPlateau):
        # A frequency that no epoch reaches keeps Lightning from stepping it as well.
        entry = {"scheduler": scheduler, "monitor": plateau_monitor(scheduler), "frequency": sys.maxsize}
        return {"optimizer": optimizer, "lr_scheduler": entry}
    if getattr(scheduler, "total_steps", 0) is None:
        scheduler.total_steps = planned_steps(trainer)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def plateau_monitor(schedule: ReduceLROnPlateau) -> str:
    """Returns the metric that a schedule waits for: its own `monitor`, which Lightning's has, else the loss."""
    return getattr(schedule, "monitor", "val/loss")


def step_plateaus(trainer: Trainer) -> None:
    """Steps the schedules that wait for a metric, after every validation.

    Called before the validation's checkpoint is written, so that a run which goes on from it has the same rate.
    Lightning would step them at an epoch's end, after the checkpoint.

    Args:
        trainer: The trainer, at the end of a validation, its metrics logged.

    Raises:
        ValueError: The metric was not logged; lists those that were.
    """
    for config in trainer.lr_scheduler_configs:
        if isinstance(config.scheduler, ReduceLROnPlateau):
            monitor = plateau_monitor(config.scheduler)
            if monitor not in trainer.callback_metrics:
                known = ", ".join(sorted(name for name in trainer.callback_metrics if name.startswith("val/")))
                raise ValueError(
                    f"model.lr_scheduler: ReduceLROnPlateau waits for {monitor!r}, but validation logs only {known}."
                )
            config.scheduler.step(float(trainer.callback_metrics[monitor]))


class WarmupDecay(SteppedSchedule):
    """The same for the learning rate.

    A checkpoint keeps how far the schedule has come, not its settings: a run that goes on with more steps, another
    decay or another rate follows these from there on.

    Args:
        optimizer: The optimizer.
        warmup_steps: Optimizer steps until the full rate.
        decay: Shape of the way down; `constant` stays up.
        decay_share: Over which last share of the steps after warm-up the rate goes down; before, it stays up.
        floor: Where the decay ends, as a share of the full rate.
        total_steps: Optimizer steps of the run. None: the module fills in what the trainer expects.

    Raises:
        ValueError: A setting is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_steps: int = 0,
        decay: Decay = "cosine",
        decay_share: float = 1.0,
        floor: float = 0.0,
        total_steps: int | None = None,
    ) -> None:
        self.warmup_steps, self.decay, self.decay_share, self.floor = warmup_steps, decay, decay_share, floor
        self.total_steps = total_steps
        WarmUpAndDecay(warmup_steps, decay, decay_share, floor)  # raises
        super().__init__(optimizer, self.factor)

    def factor(self, step: int) -> float:
        """Returns the share of the full rate at optimizer step `step` (0-based)."""
        shape = WarmUpAndDecay(self.warmup_steps, self.decay, self.decay_share, self.floor)
        return shape.factor(step, self.total_steps)
