"""Speed: tokens and samples per second, and the share of time spent waiting for data."""

from __future__ import annotations

import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from smmd_lightning.types import Batch


class Throughput(Callback):
    """Logs `speed/samples_per_second`, `speed/tokens_per_second` and `speed/loader_wait` (all processes together).

    Measured from one logged step to the next, validation and the start of an epoch left out. The wait is what the
    loader itself took (`seconds` of a `NumericLoader`), as a share of the time; a loader without that is not measured.

    Attributes:
        latest: What was measured last, empty before that.
    """

    def __init__(self) -> None:
        self.latest: dict[str, float] = {}
        self._since: float | None = None
        self._loader_at: float | None = None
        self._forget()

    def _forget(self) -> None:
        self._elapsed = 0.0
        self._waited = 0.0
        self._samples = 0
        self._tokens = 0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Resets the clock: the time until the first batch is start-up."""
        self._since = None
        self._forget()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The time until the next batch is validation."""
        self._since = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Starts the clock where it does not run."""
        if self._since is None:
            self._since, self._loader_at = time.perf_counter(), _loader_seconds(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Adds the step, and logs where the trainer logs."""
        assert self._since is not None
        now, loader = time.perf_counter(), _loader_seconds(trainer)
        self._elapsed += now - self._since
        if loader is not None and self._loader_at is not None:
            self._waited += loader - self._loader_at
        self._since, self._loader_at = now, loader
        self._samples += sum(batch.counted)
        self._tokens += batch.inputs["input_ids"].numel()
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]  # set by the trainer at run time
        if every and trainer.global_step % every == 0 and batch.window_end:
            self.latest = {
                "speed/samples_per_second": self._samples / self._elapsed * trainer.world_size,
                "speed/tokens_per_second": self._tokens / self._elapsed * trainer.world_size,
            }
            if loader is not None:
                self.latest["speed/loader_wait"] = self._waited / self._elapsed
            if trainer.logger is not None:
                # Loggers count steps from 0, as Lightning does for what a training step logs.
                trainer.logger.log_metrics(self.latest, step=trainer.global_step - 1)
            self._forget()


def _loader_seconds(trainer: Trainer) -> float | None:
    """How long the training loader has been waited for, if it knows."""
    return getattr(trainer.train_dataloader, "seconds", None)
