"""Checkpoints: the best by a validation metric, and the last."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from lightning.pytorch.callbacks import ModelCheckpoint


class BestAndLast(ModelCheckpoint):
    """Writes `checkpoints/best.ckpt` and `checkpoints/last.ckpt` into the run's folder.

    Args:
        monitor: Metric that decides which checkpoint is best.
        mode: Whether more or less of it is better.
        dirpath: Where to. None: `checkpoints/` in the run's folder.
        save_top_k: How many of the best to keep; more than one are numbered by step.
        every_n_train_steps: Also write every so many optimizer steps. None: after validation only.
        train_time_interval: Also write every so often.
        save_on_train_epoch_end: Whether to write at the end of a training epoch instead of after validation.
    """

    def __init__(
        self,
        monitor: str = "val/exact_match",
        mode: Literal["min", "max"] = "max",
        dirpath: str | None = None,
        save_top_k: int = 1,
        every_n_train_steps: int | None = None,
        train_time_interval: timedelta | None = None,
        save_on_train_epoch_end: bool | None = None,
    ) -> None:
        super().__init__(
            dirpath=dirpath,
            filename="best" if save_top_k == 1 else "step{step:08d}",
            monitor=monitor,
            mode=mode,
            save_last=True,
            save_top_k=save_top_k,
            every_n_train_steps=every_n_train_steps,
            train_time_interval=train_time_interval,
            save_on_train_epoch_end=save_on_train_epoch_end,
            auto_insert_metric_name=False,
            enable_version_counter=False,
        )
