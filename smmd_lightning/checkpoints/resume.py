"""What Lightning's own checkpoints leave open, so that a run that was stopped ends as one that was not.

Unusual: the loops' counters are corrected while a checkpoint is written. Gradients of an unfinished accumulation window
are not saved, so its micro-batches must come again: the counters go back to the last finished window, where the
loader's own position is already. A validation that was due but had not run yet must run on resuming, where Lightning
would take it for done. An epoch that `max_steps` cut short goes on. Random numbers need no saving: generators start
again with every micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities import rank_zero_warn
from torch.optim import Optimizer

from smmd_lightning.compat.of_lightning import count_one_step_less, epoch_is_complete, validation_is_due
from smmd_lightning.schedules import WarmupDecay


def draw_anew(seed: int, *place: int) -> None:
    """Starts torch's generators, of all devices, for one micro-batch.

    Args:
        seed: The run's seed.
        place: Optimizer steps done, number of the micro-batch in its accumulation window, number of the process.

    Examples:
        >>> draw_anew(1, 10, 0, 0)
        >>> first = torch.rand(1)
        >>> draw_anew(1, 10, 0, 0)
        >>> bool(torch.rand(1) == first)
        True
    """
    # torch's seed of a run may be any 64-bit number, negative ones included.
    mixed = np.random.SeedSequence([seed % 2**64, *place]).generate_state(1, np.uint64)[0]
    torch.manual_seed(int(mixed >> np.uint64(1)))


def begin_next_epoch(trainer: Trainer) -> None:
    """Lets the first epoch after resuming count, where the checkpoint was written at an epoch's end.

    Lightning counts the epoch that ended, but goes on taking the next one for a continued one, so it is never counted
    as begun: a checkpoint of it would bring one epoch too many.

    Args:
        trainer: The trainer, when training starts.
    """
    loop = trainer.fit_loop
    if loop.restarted_mid_epoch and trainer.current_epoch == loop.epoch_progress.current.ready:
        loop.reset_restart_stage()


def group_settings(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Returns the settings of each of an optimizer's groups, as it was made."""
    return [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


def follow_settings(trainer: Trainer, fresh: list[dict[str, Any]], before: Any, now: Any) -> None:
    """Gives an optimizer whose state came from a checkpoint those settings that have changed since.

    Args:
        trainer: The trainer, when training starts.
        fresh: What `group_settings` said before the state was loaded.
        before: `class_path` and `init_args` of the optimizer in the checkpoint; None: nothing was loaded.
        now: The same of the present run.
    """
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return
    old, new = before.get("init_args") or {}, now.get("init_args") or {}
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    rates = {name for name in changed if name.split("_")[-1] == "lr"}
    schedules = [config.scheduler for config in trainer.lr_scheduler_configs]
    if rates and not schedules:
        changed.add("lr")
    if rates and not all(isinstance(schedule, WarmupDecay) for schedule in schedules):
        rank_zero_warn(
            f"model.optimizer: {', '.join(sorted(rates))} differs from the checkpoint's, whose learning-rate schedule "
            "goes on with the rate it had. Take smmd_lightning.schedules.WarmupDecay, which follows the settings."
        )
    for group, settings in zip(trainer.optimizers[0].param_groups, fresh, strict=True):
        group.update({name: settings[name] for name in changed & settings.keys() - (rates if schedules else set())})


def settle_counters(trainer: Trainer, checkpoint: dict[str, Any]) -> None:
    """Corrects the loops' counters in a checkpoint that is about to be written.

    Args:
        trainer: The trainer, inside or after `fit`; otherwise nothing happens.
        checkpoint: Lightning's checkpoint; `loops` is changed in place.
    """
    if trainer.state.fn != TrainerFn.FITTING:
        return
    loops = checkpoint["loops"]["fit_loop"]
    batches = loops["epoch_loop.batch_progress"]
    current, total = batches["current"], batches["total"]
    unfinished = not epoch_is_complete(trainer)
    extra = current["ready"] % trainer.accumulate_grad_batches
    if unfinished and loops["epoch_progress"]["total"]["processed"] == loops["epoch_progress"]["total"]["ready"]:
        for counts in (loops["epoch_progress"]["current"], loops["epoch_progress"]["total"]):
            counts.update(processed=counts["ready"] - 1, completed=counts["ready"] - 1)
    if unfinished and extra:
        _go_back(loops, extra)
    elif total["completed"] == total["processed"] - 1 and validation_is_due(trainer):
        _validate_first(loops)


def _go_back(loops: dict[str, Any], batches: int) -> None:
    """Makes the counters those of a checkpoint written `batches` micro-batches earlier, at the end of that batch."""
    progress = loops["epoch_loop.batch_progress"]
    for counts in (progress["current"], progress["total"]):
        ready = counts["ready"] - batches
        counts.update(ready=ready, started=ready, processed=ready, completed=ready - 1)
    progress["is_last_batch"] = False
    count_one_step_less(loops)


def _validate_first(loops: dict[str, Any]) -> None:
    """Makes the counters those of a validation that was begun after this batch and broken off in its first batch."""
    progress = loops["epoch_loop.batch_progress"]
    for counts in (progress["current"], progress["total"]):
        counts["completed"] = counts["processed"]
    validation = loops["epoch_loop.val_loop.batch_progress"]
    validation["total"] = {"ready": 1, "started": 1, "processed": 0, "completed": 0}
    validation["current"] = {"ready": 0, "started": 0, "processed": 0, "completed": 0}
