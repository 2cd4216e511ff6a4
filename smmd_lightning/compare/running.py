"""Runs processes side by side, and knows from files alone what is done.

Unusual: each run holds a lock on its folder through a file that its process inherits. The lock lives as long as any
process of the run does, whoever started it, so a comparison killed with -9 and started again waits for runs that live
on instead of starting them twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

import yaml
from filelock import lock_descriptor

from smmd_lightning.checkpoints.atomic import open_to_append, write_text
from smmd_lightning.compare.collecting import read_result
from smmd_lightning.compare.grid import Grid
from smmd_lightning.compare.one_run import ORDER, SETTINGS, WHOLE_SETTINGS
from smmd_lightning.compare.planning import PlannedRun
from smmd_lightning.compare.starting import Process, preload, start_fork, start_program
from smmd_lightning.masking import masked

LOG, LOCK = "log.txt", ".comparison.lock"  # the run itself holds another one in its folder
POLL_SECONDS = 0.2
PATIENCE_SECONDS = 60
"""How long a run may take to write its checkpoint when the comparison is stopped."""


@dataclass(frozen=True)
class Failure:
    """A run that ended without a result.

    Attributes:
        run: Which.
        status: Exit status of its process; negative for a signal.
        log: Its log file.
    """

    run: PlannedRun
    status: int
    log: Path

    @property
    def last_line(self) -> str:
        """The last line of its log that says something."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")


@dataclass
class Slots:
    """Places where runs go on side by side.

    Attributes:
        jobs: How many.
        gpus: What each place sees of the GPUs, in turn; empty leaves the environment alone.
    """

    jobs: int = 1
    gpus: Sequence[str] = ()
    _free: list[int] = field(init=False)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"jobs must be at least 1, got {self.jobs}.")
        self._free = list(range(self.jobs))[::-1]

    def take(self) -> int | None:
        """Returns a free place, if there is one."""
        return self._free.pop() if self._free else None

    def give_back(self, place: int) -> None:
        """Frees a place."""
        self._free.append(place)

    def environment(self, place: int) -> dict[str, str]:
        """Returns the environment of a process there."""
        own = dict(os.environ)
        own.pop(WHOLE_SETTINGS, None)  # of another run, where this process is part of one
        own.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // self.jobs)))
        if self.gpus:
            own["CUDA_VISIBLE_DEVICES"] = self.gpus[place % len(self.gpus)]
        return own


@dataclass
class _Active:
    run: PlannedRun
    place: int
    process: Process
    lock: IO[bytes]


class Runner:
    """Runs what is not finished yet.

    Args:
        grid: What is compared.
        out: Folder of the comparison.
        slots: Where.
        say: Tells what happens, a line at a time.
    """

    def __init__(self, grid: Grid, out: Path, slots: Slots, say: Callable[[str], None] = print) -> None:
        self.grid, self.out, self.slots, self.say = grid, out, slots, say
        self._active: list[_Active] = []
        self._ended = self._total = 0

    def run(self, runs: Sequence[PlannedRun]) -> list[Failure]:
        """Runs all that have no result, and returns those that failed; a failed run stops no other.

        SIGTERM is handed on to the runs, which write a checkpoint, and then ends this process.
        """
        todo = deque(run for run in runs if read_result(run, self.out) is None)
        if todo and self.grid.program is None:
            if self.slots.gpus:
                raise ValueError("Forks cannot use GPUs: name a `program` in the grid, or leave --gpus out.")
            preload(run.settings for run in todo)
        self._ended, self._total = 0, len(todo)
        failures: list[Failure] = []
        handled = threading.current_thread() is threading.main_thread()
        earlier = signal.signal(signal.SIGTERM, _leave) if handled else None
        try:
            while todo or self._active:
                todo.extend(self._start_some(todo))
                failures += self._reap()
                time.sleep(POLL_SECONDS)
        finally:
            self._stop()
            if handled:
                signal.signal(signal.SIGTERM, earlier)
        return failures

    def _start_some(self, todo: deque[PlannedRun]) -> list[PlannedRun]:
        """Starts runs while there are places; returns those that another process is at, to try again later."""
        busy = []
        while todo and (place := self.slots.take()) is not None:
            run = todo.popleft()
            lock = self._lock(run)
            if lock is None:
                busy.append(run)
            elif read_result(run, self.out) is not None:
                lock.close()
                self._ended += 1
                self.say(f"[{self._ended}/{self._total}] finished meanwhile: {run.title}")
            else:
                self._active.append(_Active(run, place, self._launch(run, place, lock), lock))
                continue
            self.slots.give_back(place)
        return busy

    def _lock(self, run: PlannedRun) -> IO[bytes] | None:
        file = open_to_append(self.out / run.folder / LOCK)
        if lock_descriptor(file.fileno(), blocking=False):
            return file
        file.close()
        return None

    def _launch(self, run: PlannedRun, place: int, lock: IO[bytes]) -> Process:
        folder = self.out / run.folder
        shown = masked(run.settings)  # keys of loggers do not belong into a file that is passed around
        order = {
            "phase": run.phase,
            "task": run.task,
            "loss": run.loss,
            "variant": run.variant,
            "weight": run.weight,
            "seed": run.seed,
            "stage": run.stage,
            "checkpoint": run.checkpoint,
            "hash": run.hash,
            "keep_checkpoints": self.grid.keep_checkpoints,
            "masked": shown != run.settings,
        }
        write_text(folder / SETTINGS, yaml.safe_dump(shown, sort_keys=False))
        write_text(folder / ORDER, json.dumps(order, indent=2) + "\n")
        environment, log = self.slots.environment(place), folder / LOG
        if order["masked"]:
            environment[WHOLE_SETTINGS] = json.dumps(run.settings)
        if self.grid.program is None:
            return start_fork(folder, log, environment, keep=lock.fileno())
        program = [part.replace("{python}", sys.executable) for part in self.grid.program]
        return start_program(program, folder, log, environment, keep=[lock.fileno()])

    def _reap(self) -> list[Failure]:
        failures = []
        for active in [active for active in self._active if active.process.poll() is not None]:
            self._active.remove(active)
            self.slots.give_back(active.place)
            active.lock.close()
            self._ended += 1
            before = f"[{self._ended}/{self._total}]"
            if read_result(active.run, self.out) is not None:
                self.say(f"{before} finished: {active.run.title}")
                continue
            failure = Failure(active.run, active.process.returncode, self.out / active.run.folder / LOG)
            self.say(f"{before} FAILED ({failure.status}): {active.run.title}: {failure.last_line} ({failure.log})")
            failures.append(failure)
        return failures

    def _stop(self) -> None:
        """Asks runs that are still going to write a checkpoint and leave."""
        for active in self._active:
            active.process.terminate()
        until = time.monotonic() + PATIENCE_SECONDS
        for active in self._active:
            try:
                active.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                active.process.kill()
                active.process.wait()
            active.lock.close()
            self.slots.give_back(active.place)
        self._active = []


def _leave(number: int, frame: FrameType | None) -> Any:
    raise SystemExit(128 + number)
