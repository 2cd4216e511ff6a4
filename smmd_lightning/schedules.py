"""Learning-rate schedule for runs whose length the trainer knows."""

from __future__ import annotations

import math
from typing import Literal

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


class WarmupDecay(LambdaLR):
    """Linear warm-up, then decay to `floor` times the base rate over the rest of the run.

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
        decay: Literal["linear", "cosine", "constant"] = "cosine",
        decay_share: float = 1.0,
        floor: float = 0.0,
        total_steps: int | None = None,
    ) -> None:
        if warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {warmup_steps}.")
        if not 0 <= floor <= 1:
            raise ValueError(f"floor must lie between 0 and 1, got {floor}.")
        if not 0 < decay_share <= 1:
            raise ValueError(f"decay_share must be above 0 and at most 1, got {decay_share}.")
        if decay not in ("linear", "cosine", "constant"):
            raise ValueError(f"decay must be linear, cosine or constant, got {decay!r}.")
        self.warmup_steps = warmup_steps
        self.decay = decay
        self.decay_share = decay_share
        self.floor = floor
        self.total_steps = total_steps
        super().__init__(optimizer, self.factor)

    def factor(self, step: int) -> float:
        """Returns the share of the full rate at optimizer step `step` (0-based)."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.decay == "constant" or self.total_steps is None:
            return 1.0
        passed = min(1.0, (step - self.warmup_steps) / max(1, self.total_steps - self.warmup_steps))
        done = max(0.0, (passed - (1 - self.decay_share)) / self.decay_share)
        left = 1 - done if self.decay == "linear" else 0.5 * (1 + math.cos(math.pi * done))
        return self.floor + (1 - self.floor) * left
