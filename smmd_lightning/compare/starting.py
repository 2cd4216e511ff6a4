"""Starts the process of a run: a program, or a fork of this process.

Unusual: a fork has every library loaded already. That is most of the start of a small run, ten seconds of processor
time, and it is a process of its own all the same, with its own folder, log and exit status.

One real example::

    start_program(["python", "-m", "smmd_lightning.compare.one_run"], folder, log, environment, keep=[lock.fileno()])
    preload([run.settings for run in runs])
    start_fork(folder, log, environment, leave=[])
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from smmd_lightning.checkpoints.atomic import open_to_append


class Process(Protocol):
    """What a comparison asks of a run's process; `subprocess.Popen` is one."""

    @property
    def returncode(self) -> Any:
        """Exit status, negative for a signal; None while it goes on."""

    def poll(self) -> int | None:
        """Exit status, None while it goes on."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end."""

    def terminate(self) -> None:
        """Sends SIGTERM."""

    def kill(self) -> None:
        """Sends SIGKILL."""


def start_program(
    program: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str], keep: Sequence[int]
) -> Process:
    """Starts a program with the run's folder as its last argument.

    Args:
        program: The command.
        folder: The run's folder.
        log: Its output is added to this file.
        environment: Its environment.
        keep: File descriptors that it inherits.

    Raises:
        ValueError: The program cannot be started.
    """
    with open_to_append(log) as output:
        try:
            return subprocess.Popen(
                [*program, str(folder)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=keep,
            )
        except OSError as error:
            raise ValueError(
                f"program {list(program)} cannot be started: {error}. Look at the grid's `program`."
            ) from error


def preload(settings: Iterable[Mapping[str, Any]]) -> None:
    """Loads the command line and every module that the settings name by a `class_path`."""
    names = {path.rpartition(".")[0] for each in settings for path in _class_paths(each)}
    for name in ["smmd_lightning.cli", *sorted(names - {""})]:
        try:
            importlib.import_module(name)
        except ImportError:  # the run itself says what is wrong with its settings
            continue


def start_fork(folder: Path, log: Path, environment: Mapping[str, str], leave: Sequence[int]) -> Process:
    """Starts `one_run` in a fork of this process.

    Args:
        folder: The run's folder.
        log: Its output is added to this file.
        environment: Its environment; but what libraries read while they load has been read.
        leave: File descriptors of this process that are none of the run's: the locks of others.
    """
    return _Fork(folder, log, environment, leave)


class _Fork:
    def __init__(self, folder: Path, log: Path, environment: Mapping[str, str], leave: Sequence[int]) -> None:
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_run, args=(folder, log, dict(environment), leave))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("one_run", timeout or 0.0)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _run(folder: Path, log: Path, environment: dict[str, str], leave: Sequence[int]) -> None:
    """What the fork does."""
    import torch

    from smmd_lightning.compare.one_run import main

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the comparison's handler is not the run's
    for handle in leave:
        os.close(handle)
    with open_to_append(log) as output:
        for standard in (1, 2):
            os.dup2(output.fileno(), standard)
    sys.stdout, sys.stderr = (os.fdopen(standard, "w", buffering=1) for standard in (1, 2))
    os.environ.update(environment)
    torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))
    main([str(folder)])


def _class_paths(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        path = value.get("class_path")
        if isinstance(path, str):
            yield path
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _class_paths(inner)
