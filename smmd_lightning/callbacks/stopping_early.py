"""Early stopping that a run which was stopped and goes on does not forget.

Unusual: Lightning checks at the end of an epoch, after the checkpoint was written, so a run that goes on from there
loses that check, and a run that had stopped early trains on. Here every check comes after a validation and before its
checkpoint, and a run that stopped early stays stopped.
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.callbacks.early_stopping import EarlyStoppingReason
from torch.optim.lr_scheduler import ReduceLROnPlateau

from smmd_lightning.compat.of_lightning import check_after_validation, checks_at_epoch_end
from smmd_lightning.metrics import metric_facts


class StoppingEarly(Callback):
    """Makes the `EarlyStopping` callbacks of a run resumable; does nothing where there are none."""

    def __init__(self) -> None:
        self._patience: dict[EarlyStopping, int] = {}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Checks the settings, before weights load.

        Raises:
            ValueError: A callback would never act, would act on the wrong side, or would lose checks; says what to
                change.
        """
        if stage != "fit":
            return
        for callback in _early_stoppings(trainer):
            name = f"EarlyStopping(monitor={callback.monitor!r})"
            if checks_at_epoch_end(callback):
                raise ValueError(
                    f"{name}: check_on_train_epoch_end=true would check after the checkpoint is written, so a run that "
                    "goes on from it would lose that check. Leave it out: it checks after every validation."
                )
            check_after_validation(callback)
            check_watcher(trainer, name, callback.monitor, callback.mode)
            self._patience[callback] = callback.patience

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Lets a run that had stopped early stay stopped, unless its patience has been raised since.

        Raises:
            ValueError: A validation would come inside an accumulation window.
        """
        for config in trainer.lr_scheduler_configs:
            if isinstance(config.scheduler, ReduceLROnPlateau):
                check_windows(trainer, "model.lr_scheduler: ReduceLROnPlateau")
        for callback in _early_stoppings(trainer):
            check_windows(trainer, f"EarlyStopping(monitor={callback.monitor!r})")
            callback.patience = self._patience.get(callback, callback.patience)  # the checkpoint's came over it
            reason = callback.stopping_reason
            if reason == EarlyStoppingReason.PATIENCE_EXHAUSTED and callback.wait_count < callback.patience:
                callback.stopping_reason = EarlyStoppingReason.NOT_STOPPED
            elif reason != EarlyStoppingReason.NOT_STOPPED:
                trainer.should_stop = True


def check_watcher(trainer: Trainer, name: str, monitor: str, mode: str) -> None:
    """Refuses what waits for a validation that never comes, or takes the worse for the better.

    Args:
        trainer: The trainer.
        name: What waits, as the user knows it.
        monitor: The metric that it waits for.
        mode: "min" or "max".

    Raises:
        ValueError: No validation will run, one would come inside an accumulation window, or the metric declares the
            other direction.
    """
    if trainer.limit_val_batches == 0:
        raise ValueError(
            f"{name} waits for a validation, but trainer.limit_val_batches=0 leaves it out. Raise it, or take this out."
        )
    window = trainer.accumulate_grad_batches
    if isinstance(trainer.val_check_interval, int) and trainer.val_check_interval % window:
        raise ValueError(inside_a_window(name, trainer.val_check_interval, window))
    try:
        direction = metric_facts(monitor).direction
    except ValueError:  # of somebody's own callback or module, perhaps
        return
    if direction != mode:
        way = "less" if direction == "min" else "more"
        raise ValueError(f"{name}: mode={mode}, but {way} of {monitor} is better. Set mode: {direction}.")


def check_windows(trainer: Any, name: str) -> None:
    """Refuses what waits for validations that would begin inside an accumulation window.

    A run that goes on repeats an unfinished window, so such a validation would count twice.

    Args:
        trainer: The trainer, its loaders at hand.
        name: What waits, as the user knows it.

    Raises:
        ValueError: There would be such a validation.
    """
    window, batches, every = trainer.accumulate_grad_batches, trainer.num_training_batches, trainer.val_check_batch
    whole = batches % window == 0 or trainer.check_val_every_n_epoch is not None
    if every is not None and every < batches and (every % window or not whole):
        raise ValueError(inside_a_window(name, every, window))


def inside_a_window(name: str, every: int, window: int) -> str:
    """The message: validations after so many micro-batches do not fall on the ends of accumulation windows."""
    return (
        f"{name}: a validation every {every} micro-batches would come inside an accumulation window of {window} "
        "(trainer.accumulate_grad_batches); a run that goes on repeats the window, so that validation would count "
        f"twice. Set trainer.val_check_interval to a multiple of {window}."
    )


def _early_stoppings(trainer: Any) -> list[EarlyStopping]:
    return [callback for callback in trainer.callbacks if isinstance(callback, EarlyStopping)]
