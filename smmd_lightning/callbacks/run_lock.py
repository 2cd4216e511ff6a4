"""One training run in a folder at a time.

Unusual: the lock is the kernel's (POSIX record lock), not the file's existence, so it ends with the process that holds
it, however that ends; the file stays and locks nothing by itself. It tells people who holds the folder, or did last.

One real example, `runs/quickstart/.lock`::

    {"pid": 4711, "host": "node07", "since": "2026-01-31 12:00:05"}
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import time
from pathlib import Path
from typing import IO

from lightning.pytorch import Callback, LightningModule, Trainer

log = logging.getLogger(__name__)

FILE = ".lock"


class RunLock(Callback):
    """Holds the run's folder while `fit` runs; process 0 does it for all."""

    def __init__(self) -> None:
        self._file: IO[str] | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Takes the folder, before anything is written into it.

        Raises:
            RuntimeError: Another run has it; names process, host and since when.
        """
        if stage != "fit":
            return
        complaint = None
        if trainer.is_global_zero and self._file is None:
            try:
                self._file = lock(Path(trainer.default_root_dir))
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
        if self._file is not None:
            self._file.close()
            self._file = None


def lock(folder: Path) -> IO[str]:
    """Locks a folder until the returned file is closed or this process ends.

    Args:
        folder: A run's folder; made where it does not exist.

    Raises:
        RuntimeError: Another process holds it, or the folder cannot be written to.
    """
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise RuntimeError(f"{folder} cannot be written to: {error}. Choose another folder with --run_dir.") from error
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            log.warning("%s: this file system knows no locks (%s); see that only one run uses it", folder, error)
            return file
        file.seek(0)
        holder = _read(file.read())
        file.close()
        raise RuntimeError(
            f"{folder} is in use by another run ({holder}). Wait for its end, stop it, or choose another folder with "
            "--run_dir."
        ) from error
    file.seek(0)
    file.truncate()
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}) + "\n")
    file.flush()
    return file


def _read(text: str) -> str:
    try:
        found = json.loads(text)
        return f"process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return "it has not written its name yet"
