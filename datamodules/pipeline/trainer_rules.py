"""What Lightning's trainer asks of the training loader, and what it cannot have.

Unusual: the training loader reads one accumulation window ahead and counts the epochs itself, from which the exact mean
over an optimizer step and the exact place to go on from follow. So it must know where Lightning ends a window and an
epoch, and trainer settings that move these ends behind its back are refused.
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import GradientAccumulationScheduler


def check_trainer(trainer: Any) -> None:
    """Refuses what the training loader cannot follow, before weights load.

    Args:
        trainer: The trainer that will fit.

    Raises:
        ValueError: A setting or callback moves accumulation windows or epochs; says what to take.
    """
    if any(isinstance(callback, GradientAccumulationScheduler) for callback in trainer.callbacks):
        raise ValueError(
            "GradientAccumulationScheduler changes accumulate_grad_batches while training, but the loader reads whole "
            "accumulation windows ahead. Leave the callback out and set trainer.accumulate_grad_batches."
        )
    if trainer.overfit_batches:
        raise ValueError(
            f"trainer.overfit_batches={trainer.overfit_batches} would not repeat its batches: each epoch has an order "
            "of its own. To train on few samples again and again, set data.limit to their number."
        )
    if trainer.reload_dataloaders_every_n_epochs:
        raise ValueError(
            f"trainer.reload_dataloaders_every_n_epochs={trainer.reload_dataloaders_every_n_epochs} would begin with "
            "the first epoch's order again. Set it to 0: the loader draws a new order every epoch by itself."
        )


def micro_batches(trainer: Any, whole: int) -> int:
    """Returns the micro-batches of a process after which an epoch ends.

    Args:
        trainer: Its `limit_train_batches` is a number or a share. None: no limit.
        whole: Micro-batches that the samples are enough for.
    """
    limit = 1.0 if trainer is None else trainer.limit_train_batches
    return min(limit, whole) if isinstance(limit, int) else int(whole * limit)
