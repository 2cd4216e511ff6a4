"""Leaving in time when a cluster, or a person at the keyboard, asks for it.

Unusual: Lightning's own handlers write the checkpoint (and broadcast) from inside the signal, wherever each process
happens to be, which hangs processes that are in the middle of another exchange. Here the signal only raises a flag; at
the end of the optimizer step the processes agree, write `last.ckpt` together, ask SLURM for another turn, and leave.

One real example: `#SBATCH --signal=USR1@120 --requeue` in `configs/cluster/slurm.sbatch`.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from smmd_lightning.callbacks.best_and_last import BestAndLast
from smmd_lightning.compat.of_lightning import is_accumulating, log_step_now, training_is_done

log = logging.getLogger(__name__)


class Preemption(Callback):
    """Stops training at the end of an optimizer step after SIGUSR1, SIGTERM or SIGINT (Ctrl-C), with a checkpoint.

    A second Ctrl-C leaves at once.
    SIGUSR1 under SLURM also puts the job back into the queue (`scontrol requeue`); with `--resume auto` it goes on.

    Args:
        requeue: Whether to ask SLURM for another turn after SIGUSR1.
    """

    def __init__(self, requeue: bool = True) -> None:
        self.requeue = requeue
        self._received: int | None = None
        self._earlier: dict[int, Any] = {}

    def on_sanity_check_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Takes over the signals before any loader's worker starts: SLURM signals these too, and they must survive."""
        self._take()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Takes over the signals from Lightning."""
        self._take()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Leaves if any process was asked to.

        Raises:
            SystemExit: The checkpoint is written. Exit code 0 if SLURM gives the job another turn, else 128 and the
                signal's number, as after any signal: 138 (SIGUSR1), 143 (SIGTERM), 130 (SIGINT).
        """
        if is_accumulating(trainer):
            return
        if not trainer.strategy.reduce_boolean_decision(self._received is not None, all=False):
            return
        if training_is_done(trainer) and trainer.global_step == trainer.max_steps:
            return  # what is left takes no longer than another start
        preempted = trainer.strategy.reduce_boolean_decision(self._received == signal.SIGUSR1, all=False)
        by_hand = trainer.strategy.reduce_boolean_decision(self._received == signal.SIGINT, all=False)
        checkpoints = [callback for callback in trainer.checkpoint_callbacks if isinstance(callback, BestAndLast)]
        log_step_now(trainer)  # else this step would be missing in the log for good
        for callback in checkpoints[:1]:
            callback.save_last_now(trainer)
        if trainer.is_global_zero:
            kept = (
                f"{checkpoints[0].last_model_path} is written"
                if checkpoints
                else "no checkpoint callback, nothing kept"
            )
            print(f"stopped by a signal after {trainer.global_step} steps; {kept}", flush=True)
        again = preempted and self.requeue and trainer.is_global_zero and self._requeue()
        if trainer.strategy.broadcast(again):
            raise SystemExit(0)
        raise SystemExit(128 + (signal.SIGUSR1 if preempted else signal.SIGINT if by_hand else signal.SIGTERM))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Gives the signals back."""
        self._restore()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Gives the signals back."""
        self._restore()

    def _take(self) -> None:
        if not self._earlier and threading.current_thread() is threading.main_thread():
            numbers = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
            self._earlier = {number: signal.signal(number, self._note) for number in numbers}

    def _note(self, number: int, _: Any) -> None:
        if number == signal.SIGINT:
            if self._received == signal.SIGINT:
                raise KeyboardInterrupt
            # Not print: a handler may interrupt another print.
            os.write(2, b"\nstopping at the end of this step, with a checkpoint (Ctrl-C again: at once)\n")
        if self._received != signal.SIGUSR1:  # SLURM sends SIGTERM too, once the job is requeued
            self._received = number

    def _restore(self) -> None:
        for number, handler in self._earlier.items():
            # Lightning's own would still broadcast from inside a signal; a leaving process needs none.
            leaving = self._received is not None and number != signal.SIGINT
            signal.signal(number, signal.SIG_IGN if leaving else handler)
        self._earlier = {}

    def _requeue(self) -> bool:
        """Asks SLURM for another turn; returns whether it was granted."""
        if "SLURM_JOB_ID" not in os.environ:
            return False
        job = os.environ["SLURM_JOB_ID"]
        if "SLURM_ARRAY_JOB_ID" in os.environ:
            job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
        try:
            result = subprocess.run(["scontrol", "requeue", job], capture_output=True, text=True, check=False)
        except OSError as error:  # in a container, say
            log.warning("scontrol requeue %s could not be started: %s; start the job again by hand", job, error)
            return False
        if result.returncode:
            log.warning("scontrol requeue %s failed: %s; start the job again by hand", job, result.stderr.strip())
        return not result.returncode
