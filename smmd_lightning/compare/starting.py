"""Starts the process of a run: a program, or a fork of a server that has loaded every library.

Unusual: loading libraries is most of the start of a small run, ten seconds of processor time. A fork of
`multiprocessing`'s server has them already, and it is a process of its own all the same, with its own folder, log and
exit status. The server has no threads and holds no files, so neither does a fork, but for the lock that it is given.

One real example::

    start_program(["python", "-m", "smmd_lightning.compare.one_run"], folder, log, environment, keep=[lock.fileno()])
    preload([run.settings for run in runs])
    start_fork(folder, log, environment, keep=lock.fileno())
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any, Protocol

from smmd_lightning.checkpoints.atomic import open_to_append
from smmd_lightning.compare.one_run import main

_SERVER = multiprocessing.get_context("forkserver")


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
    """Has the server load the command line, and this project's modules that the settings name by a `class_path`.

    Other modules are left to the runs, which say what is wrong with them. Once the server is up, this changes nothing.
    """
    paths = {path.rpartition(".")[0] for each in settings for path in _class_paths(each)}
    names = {path for path in paths if path.partition(".")[0] in {"smmd_lightning", "datamodules"}}
    _SERVER.set_forkserver_preload(["smmd_lightning.cli", *sorted(names - {"smmd_lightning.cli"})])


def start_fork(
    folder: Path, log: Path, environment: Mapping[str, str], keep: int, does: Callable[[list[str]], None] = main
) -> Process:
    """Starts `one_run` in a fork of the server.

    Args:
        folder: The run's folder.
        log: Its output is added to this file.
        environment: Its environment; but what libraries read while they load has been read.
        keep: File descriptor that it inherits: its lock.
        does: What it does with its arguments, the folder; a function that a module holds by name.
    """
    return _Fork(folder, log, environment, keep, does)


class _Fork:
    def __init__(
        self, folder: Path, log: Path, environment: Mapping[str, str], keep: int, does: Callable[[list[str]], None]
    ) -> None:
        settings = (folder, log, dict(environment), _Handed(keep), does)
        self._process = _SERVER.Process(target=_run, args=settings)
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


class _Handed:
    """A file descriptor on its way into the fork, where it is a plain number again."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _arrived, (DupFd(self._handle),)


def _arrived(handed: Any) -> int:
    return int(handed.detach())


def _run(folder: Path, log: Path, environment: dict[str, str], keep: int, does: Callable[[list[str]], None]) -> None:
    """What the fork does."""
    import torch

    with open_to_append(log) as output:
        for standard in (1, 2):
            os.dup2(output.fileno(), standard)
    sys.stdout, sys.stderr = (os.fdopen(standard, "w", buffering=1) for standard in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))
    does([str(folder)])


def _class_paths(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        path = value.get("class_path")
        if isinstance(path, str):
            yield path
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _class_paths(inner)
