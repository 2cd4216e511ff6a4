"""One training run, and one evaluation, in a folder at a time.

Unusual: the lock is the kernel's, not the file's existence, so it ends with the process that holds it, however that
ends; the file stays and locks nothing by itself. It tells people who holds the folder, or did last. A forked process,
a loader's worker say, does not hold its parent's lock.

One real example, `runs/quickstart/.lock`::

    {"pid": 4711, "host": "node07", "since": "2026-01-31 12:00:05"}
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import time
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout
from lightning.pytorch import Callback, LightningModule, Trainer

from smmd_lightning.checkpoints.atomic import FILE_MODE, make_folder

log = logging.getLogger(__name__)

TRAINING, EVALUATION = ".lock", ".evaluation.lock"
"""Lock files; an evaluation may go on beside a training, and disturbs none of its files."""


class RunLock(Callback):
    """Holds the run's folder while a stage runs; process 0 does it for all."""

    def __init__(self) -> None:
        self._lock: BaseFileLock | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Takes the folder, before anything is written into it.

        Raises:
            RuntimeError: Another run has it; names process, host and since when.
        """
        complaint = None
        if trainer.is_global_zero and self._lock is None:
            try:
                self._lock = lock(Path(trainer.default_root_dir), TRAINING if stage == "fit" else EVALUATION)
            except RuntimeError as error:
                complaint = str(error)
        complaint = trainer.strategy.broadcast(complaint)
        if complaint is not None:
            raise RuntimeError(complaint)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Lets go of the folder."""
        self._release()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Lets go of the folder."""
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def lock(folder: Path, name: str = TRAINING) -> BaseFileLock:
    """Locks a folder until the returned lock is released or this process ends.

    Args:
        folder: A run's folder; made where it does not exist.
        name: The lock's file in it.

    Raises:
        RuntimeError: Another process holds it, or the folder cannot be written to.
    """
    path = folder / name
    # Without the kernel's locks filelock would fall back on a file's existence, which a killed run leaves behind.
    taken = FileLock(
        path, timeout=0, mode=FILE_MODE, thread_local=False, fallback_to_soft=False, on_acquired=_write_holder
    )
    try:
        make_folder(folder)
        taken.acquire()
    except Timeout as error:
        work = "run" if name == TRAINING else "evaluation"
        raise RuntimeError(
            f"{folder} is in use by another {work} ({_holder(path)}). Wait for its end, stop it, or choose another "
            "folder with --run_dir."
        ) from error
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise RuntimeError(
                f"{folder} cannot be written to: {error}. Choose another folder with --run_dir."
            ) from error
        log.warning("%s: this file system knows no locks (%s); see that only one run uses it", folder, error)
    return taken


def _write_holder(handle: int) -> None:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    os.ftruncate(handle, 0)
    os.pwrite(
        handle, (json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}) + "\n").encode(), 0
    )


def _holder(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return f"process {found['pid']} on {found['host']}, since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has not written its name yet"
