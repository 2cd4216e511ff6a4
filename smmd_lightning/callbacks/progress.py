"""Progress: a bar in a terminal, plain lines everywhere else.

One real example of the lines, as they stand in a cluster's log::

    step 20/3000  train/loss 2.31  train/ce 2.14  train/numeric 0.56  samples/s 118  left 6 min 40 s
    validation at step 500  val/loss 0.71  val/within_5_minutes 0.62  val/exact_match 0.38
"""

from __future__ import annotations

import sys
import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar, RichProgressBar

from smmd_lightning.callbacks.throughput import Throughput
from smmd_lightning.report.durations import duration

TRAINING = ("train/loss", "train/ce", "train/numeric")


def progress() -> ProgressBar:
    """Returns the bar for a terminal, else the lines."""
    return TerminalProgress() if sys.stdout.isatty() else LineProgress()


def speed(trainer: Any) -> dict[str, float]:
    """Samples per second as measured last; empty before that."""
    for callback in trainer.callbacks:
        if isinstance(callback, Throughput) and callback.latest:
            return {"samples/s": callback.latest["speed/samples_per_second"]}
    return {}


class TerminalProgress(RichProgressBar):
    """Lightning's rich bar (time left, steps per second, the watched metric) with loss and samples per second."""

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
        """Returns what stands behind the bar."""
        metrics = {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}
        losses = {"loss": trainer.callback_metrics["train/loss"]} if "train/loss" in trainer.callback_metrics else {}
        return {**losses, **metrics, **speed(trainer)}


class LineProgress(ProgressBar):
    """One line each time the trainer logs, and one a validation."""

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self._start: tuple[float, int] | None = None
        self._said = -1

    def disable(self) -> None:
        """Keeps quiet (Lightning calls it on all processes but the first)."""
        self._enabled = False

    def enable(self) -> None:
        """Speaks again."""
        self._enabled = True

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock for the time left."""
        self._start = (time.monotonic(), trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Says where training stands, where the trainer logs."""
        step, every = trainer.global_step, trainer.log_every_n_steps  # type: ignore[attr-defined]
        # The last micro-batch of a step is not told from the others here, but the step count moves with it.
        if not self._enabled or not every or step % every or step == self._said:
            return
        self._said = step
        values = {name: trainer.callback_metrics[name] for name in TRAINING if name in trainer.callback_metrics}
        self._say(f"step {step}{self._of(trainer)}", {**values, **speed(trainer)}, self._left(trainer))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Says what the validation gave: the loss and the watched metrics."""
        if not self._enabled or trainer.sanity_checking:
            return
        shown = ["val/loss", f"val/{getattr(pl_module, 'watch', '')}", "val/exact_match"]
        values = {name: trainer.callback_metrics[name] for name in shown if name in trainer.callback_metrics}
        self._say(f"validation at step {trainer.global_step}", values)

    def _of(self, trainer: Trainer) -> str:
        return f"/{trainer.max_steps}" if trainer.max_steps > 0 else f", epoch {trainer.current_epoch}"

    def _left(self, trainer: Trainer) -> str:
        assert self._start is not None
        elapsed, done = time.monotonic() - self._start[0], trainer.global_step - self._start[1]
        if trainer.max_steps <= 0 or done <= 0:
            return ""
        return f"left {duration(elapsed / done * (trainer.max_steps - trainer.global_step))}"

    def _say(self, start: str, values: dict[str, Any], end: str = "") -> None:
        parts = [start, *(f"{name} {float(value):.4g}" for name, value in values.items()), end]
        print("  ".join(part for part in parts if part), flush=True)
