"""Speed: supervised tokens, tokens and samples per second, and the share of time spent waiting for data."""

from __future__ import annotations

import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from smmd_lightning.types import Batch


class Throughput(Callback):
    """Logs `speed/samples_per_second`, `speed/tokens_per_second` and `speed/loader_wait` (all processes together).

    Measured from one logged step to the next, validation left out.

    Attributes:
        latest: What was measured last, empty before that.
    """

    def __init__(self) -> None:
        self.latest: dict[str, float] = {}
        self._reset()

    def _reset(self) -> None:
        self._busy = 0.0
        self._wait = 0.0
        self._samples = 0
        self._tokens = 0
        self._start: float | None = None
        self._end: float | None = None

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts anew."""
        self._reset()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The time until the next batch is validation, not waiting."""
        self._end = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Notes when the batch was there."""
        self._start = time.perf_counter()
        if self._end is not None:
            self._wait += self._start - self._end

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Adds the step, and logs where the trainer logs."""
        self._end = time.perf_counter()
        assert self._start is not None
        self._busy += self._end - self._start
        self._samples += sum(batch.counted)
        self._tokens += batch.inputs["input_ids"].numel()
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]  # set by the trainer at run time
        if trainer.global_step % every == 0 and batch.window_end:
            elapsed = self._busy + self._wait
            values = {
                "speed/samples_per_second": self._samples / elapsed * trainer.world_size,
                "speed/tokens_per_second": self._tokens / elapsed * trainer.world_size,
                "speed/loader_wait": self._wait / elapsed,
            }
            self.latest = values
            if trainer.logger is not None:
                trainer.logger.log_metrics(values, step=trainer.global_step)
            end = self._end
            self._reset()
            self._end = end
