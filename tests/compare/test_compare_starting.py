"""Runs as forks: processes of their own, whose output, exit status and locks are their own."""

import contextlib
import os
import signal
import sys
import time

import pytest

from smmd_lightning.commands.compare import main
from smmd_lightning.compare import figures as plots
from smmd_lightning.compare import one_run, starting
from smmd_lightning.compare.comparison import Comparison
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.running import Runner, Slots

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "SMMD_TEST_SAYS": "hello"}


def finished(process):
    return process.wait(timeout=60)


@pytest.fixture
def fork(monkeypatch, tmp_path):
    def start(does, leave=()):
        monkeypatch.setattr(one_run, "main", does)
        return starting.start_fork(tmp_path, tmp_path / "log.txt", ENVIRONMENT, leave)

    return start


def test_a_fork_has_its_own_process_environment_and_log(fork, tmp_path):
    def does(argv):
        print(os.getpid(), os.environ["SMMD_TEST_SAYS"], *argv)
        os.system("echo from below")  # what a library writes to the descriptor itself
        print("as an error", file=sys.stderr)

    (tmp_path / "log.txt").write_text("before\n")
    process = fork(does)
    assert finished(process) == process.returncode == process.poll() == 0
    before, own, below, error = (tmp_path / "log.txt").read_text().splitlines()
    assert own.split()[0] != str(os.getpid())
    assert own.split()[1:] == ["hello", str(tmp_path)]
    assert (before, below, error) == ("before", "from below", "as an error")
    assert "SMMD_TEST_SAYS" not in os.environ


def test_a_fork_that_fails_or_is_stopped_says_so(fork, tmp_path):
    def fails(argv):
        raise RuntimeError("the disk is full")

    process = fork(fails)
    assert finished(process) == 1
    assert "the disk is full" in (tmp_path / "log.txt").read_text().splitlines()[-1]
    earlier = signal.signal(signal.SIGTERM, lambda *_: None)  # the comparison's own handler is none of the fork's
    try:
        process = fork(lambda argv: print("at work", flush=True) or time.sleep(60))
        while "at work" not in (tmp_path / "log.txt").read_text():
            assert process.poll() is None
        process.terminate()
        assert finished(process) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_a_fork_lets_go_of_the_locks_of_others(fork, tmp_path):
    with (tmp_path / "ours").open("w") as ours, (tmp_path / "others").open("w") as others:

        def does(argv):
            held = set()
            for handle in range(3, 256):
                with contextlib.suppress(OSError):
                    held.add(os.fstat(handle).st_ino)
            print(os.stat(ours.name).st_ino in held, os.stat(others.name).st_ino in held)

        assert finished(fork(does, leave=[others.fileno()])) == 0
    assert (tmp_path / "log.txt").read_text() == "True False\n"


def test_a_grid_of_forks_ends_like_one_of_programs(write_grid, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "available", lambda: False)
    tasks = {"sums": {"config": "task.yaml"}}
    programs, forks = tmp_path / "programs", tmp_path / "forks"
    assert main(["--config", str(write_grid(tasks=tasks)), "--out", str(programs), "--jobs", "4"]) == 0

    def quick(argv):
        sys.path.insert(0, os.path.dirname(__file__))
        import quick_run

        sys.argv = ["quick_run", *argv]
        quick_run.main()

    monkeypatch.setattr(one_run, "main", quick)
    monkeypatch.setattr("smmd_lightning.compare.running.preload", lambda settings: None)
    assert main(["--config", str(write_grid(tasks=tasks, program=None)), "--out", str(forks), "--jobs", "4"]) == 0
    assert (forks / "results.csv").read_bytes() == (programs / "results.csv").read_bytes()


def test_every_class_that_the_settings_name_is_loaded_and_a_missing_one_is_left_to_the_run(monkeypatch):
    loaded = []

    def load(name):
        loaded.append(name)
        if name == "missing":
            raise ImportError(name)

    monkeypatch.setattr(starting.importlib, "import_module", load)
    inner = {"class_path": "b.c.Inner"}
    starting.preload(
        [{"model": {"class_path": "a.Outer", "init_args": {"parts": [inner, 1]}}}, {"x": {"class_path": "missing.X"}}]
    )
    assert loaded == ["smmd_lightning.cli", "a", "b.c", "missing"]


def test_forks_and_gpus_do_not_go_together(write_grid, tmp_path):
    file = write_grid(program=None, losses={"ce": {}})
    comparison = Comparison(file, tmp_path / "out")
    with pytest.raises(ValueError, match="Forks cannot use GPUs: name a `program`"):
        Runner(load_grid(file), tmp_path / "out", Slots(1, ["0"])).run(
            comparison.plan.final({("sums", "ce"): None, ("clocks", "ce"): None})
        )
