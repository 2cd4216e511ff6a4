"""Checkpoints: the best by a validation metric, and the last.

Unusual: the last one is written on its own clock, whether or not the monitored metric is known yet (Lightning would
wait for it, and a run killed before its first validation would have nothing to go on from).
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from torch import Tensor

from smmd_lightning.compat.of_lightning import LastCheckpoint, is_accumulating, log_step_now, validation_is_due
from smmd_lightning.metrics import metric_facts

log = logging.getLogger(__name__)

PATHS = ("best_model_path", "kth_best_model_path", "last_model_path")
"""Of a checkpoint callback's state, what names files."""


class BestAndLast(LastCheckpoint):
    """Writes `checkpoints/best.ckpt` and `checkpoints/last.ckpt` into the run's folder.

    Args:
        monitor: Metric that decides which checkpoint is best.
        mode: Whether more ("max") or less ("min") of it is better. None: as the
            metric declares, see `smmd_lightning.metrics.metric_facts`.
        dirpath: Where to. None: `checkpoints/` in the run's folder.
        save_top_k: How many of the best to keep; more than one are numbered by step.
        every_n_train_steps: Also write the last one every so many optimizer steps. None: after validation only.
        train_time_interval: Also write the last one every so often.
        save_on_train_epoch_end: Whether to write at the end of a training epoch instead of after validation.

    Raises:
        ValueError: `every_n_train_steps` is below 1, or `mode` is None and nothing declares the monitored metric.
    """

    def __init__(
        self,
        monitor: str = "val/exact_match",
        mode: Literal["min", "max"] | None = None,
        dirpath: str | None = None,
        save_top_k: int = 1,
        every_n_train_steps: int | None = None,
        train_time_interval: timedelta | None = None,
        save_on_train_epoch_end: bool | None = None,
    ) -> None:
        if every_n_train_steps is not None and every_n_train_steps < 1:
            raise ValueError(f"every_n_train_steps must be at least 1, got {every_n_train_steps}.")
        super().__init__(
            dirpath=dirpath,
            filename="best" if save_top_k == 1 else "step{step:08d}",
            monitor=monitor,
            mode=mode or metric_facts(monitor).direction,
            save_last=True,
            save_top_k=save_top_k,
            save_on_train_epoch_end=save_on_train_epoch_end,
            auto_insert_metric_name=False,
            enable_version_counter=False,
        )
        self.last_every_n_steps = every_n_train_steps
        self.last_every = train_time_interval

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Settles the folder: the run's own, whatever the logger's is."""
        if self.dirpath is None:
            self.dirpath = str(Path(trainer.default_root_dir) / "checkpoints")
        super().setup(trainer, pl_module, stage)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what is best; in a folder that has been moved, the same files by their new paths."""
        here = Path(str(self.dirpath))
        best = [str(here / Path(path).name) for path in state_dict.get("best_k_models", {})]
        if best and all(Path(path).exists() for path in best):
            moved = {name: str(here / Path(state_dict[name]).name) for name in PATHS if state_dict.get(name)}
            scores = dict(zip(best, state_dict["best_k_models"].values(), strict=True))
            state_dict = {**state_dict, **moved, "dirpath": self.dirpath, "best_k_models": scores}
        super().load_state_dict(state_dict)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Notes that the last checkpoint is written, where the run goes on from it: a finished run stays as it is."""
        super().on_train_start(trainer, pl_module)
        last = Path(str(self.dirpath)) / f"{self.CHECKPOINT_NAME_LAST}{self.FILE_EXTENSION}"
        if trainer.ckpt_path is not None and Path(trainer.ckpt_path).absolute() == last.absolute():
            self.saved_step = trainer.global_step

    def check_monitor_top_k(self, trainer: Trainer, current: Tensor | None = None) -> bool:
        """Returns whether a value belongs to the best; NaN and infinity never do, nor what has such a loss.

        Weights that are NaN answer nothing right, and 0 right answers are a number like any other.
        """
        values = {self.monitor: current, "val/loss": trainer.callback_metrics.get("val/loss")}
        for name, value in values.items():
            if value is not None and not bool(torch.isfinite(torch.as_tensor(value))):
                log.warning("%s is %s at step %d: no best checkpoint", name, float(value), trainer.global_step)
                return False
        return super().check_monitor_top_k(trainer, current)

    def before_writing(self, trainer: Trainer) -> None:
        """Flushes the logs: what is logged of the steps that the checkpoint holds must not be lost with it."""
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                if isinstance(logger, CSVLogger):
                    logger.save()
                elif isinstance(logger, TensorBoardLogger):
                    logger.experiment.flush()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Writes the last one where it is due, unless validation comes next and will write it anyway."""
        if self.nothing_to_save(trainer) or is_accumulating(trainer):
            return
        if self._last_is_due(trainer) and not validation_is_due(trainer):
            self.last_checked = time.monotonic()
            # Lightning logs this step only after its callbacks: a run killed in between would never log it. The same
            # values come once more.
            log_step_now(trainer)
            self.save_last_now(trainer)

    def _last_is_due(self, trainer: Trainer) -> bool:
        if self.last_every_n_steps is not None and trainer.global_step % self.last_every_n_steps == 0:
            return True
        if self.last_every is None or self.last_checked is None:
            return False
        due = time.monotonic() - self.last_checked >= self.last_every.total_seconds()
        return bool(trainer.strategy.broadcast(due))  # clocks differ, and all must write together

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes, where validation leaves it to the epoch's end; nothing is best before the first validation."""
        if self.monitor in trainer.callback_metrics:
            super().on_train_epoch_end(trainer, pl_module)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets that this step may have been written already: what validation finds belongs into the file."""
        if not trainer.sanity_checking:
            self.saved_step = -1

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes both; where the monitored metric is not there, the last one is written before that ends the run."""
        try:
            super().on_validation_end(trainer, pl_module)
        except MisconfigurationException:
            self.save_last_now(trainer)
            raise

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the last one if steps were made since it was written."""
        if not self.nothing_to_save(trainer):
            self.save_last_now(trainer)
