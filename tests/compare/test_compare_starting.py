"""Runs as forks: processes of their own, whose output, exit status and locks are their own."""

import functools
import os
import signal

import forked
import pytest
from filelock import lock_descriptor

from smmd_lightning.commands.compare import main
from smmd_lightning.compare import figures as plots
from smmd_lightning.compare import running, starting
from smmd_lightning.compare.comparison import Comparison
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.running import Runner, Slots

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "SMMD_TEST_SAYS": "hello"}


def finished(process):
    return process.wait(timeout=120)


@pytest.fixture(scope="module", autouse=True)
def loaded_server():
    """Loads the libraries once, as a comparison does."""
    starting.preload([])


@pytest.fixture
def fork(tmp_path):
    with (tmp_path / "lock").open("w") as lock:

        def start(does):
            return starting.start_fork(tmp_path, tmp_path / "log.txt", ENVIRONMENT, lock.fileno(), does)

        yield start


def test_a_fork_has_its_own_process_environment_and_log(fork, tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_TEST_IS_NOT_THERE", "1")
    (tmp_path / "log.txt").write_text("before\n")
    process = fork(forked.speaks)
    assert finished(process) == process.returncode == process.poll() == 0
    before, own, below, error = (tmp_path / "log.txt").read_text().splitlines()
    assert own.split()[0] != str(os.getpid())
    assert own.split()[1:] == ["hello", "False", str(tmp_path)]
    assert (before, below, error) == ("before", "from below", "as an error")
    assert "SMMD_TEST_SAYS" not in os.environ


def test_a_fork_that_fails_or_is_stopped_says_so(fork, tmp_path):
    process = fork(forked.fails)
    assert finished(process) == 1
    assert "the disk is full" in (tmp_path / "log.txt").read_text().splitlines()[-1]
    earlier = signal.signal(signal.SIGTERM, lambda *_: None)  # the comparison's own handler is none of the fork's
    try:
        process = fork(forked.sleeps)
        while "at work" not in (tmp_path / "log.txt").read_text():
            assert process.poll() is None
        process.terminate()
        assert finished(process) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_a_fork_holds_its_own_lock_and_no_other_file_of_the_comparison(fork, tmp_path):
    with (tmp_path / "others").open("w") as others:
        assert finished(fork(forked.lists_files)) == 0
        held = set((tmp_path / "log.txt").read_text().split())
        assert str(os.stat(tmp_path / "lock").st_ino) in held
        assert str(os.fstat(others.fileno()).st_ino) not in held


def test_a_lock_lives_as_long_as_its_fork(fork, tmp_path):
    with (tmp_path / "lock").open("a") as ours:
        process = starting.start_fork(tmp_path, tmp_path / "log.txt", ENVIRONMENT, ours.fileno(), forked.sleeps)
        assert lock_descriptor(ours.fileno(), blocking=False)
    with (tmp_path / "lock").open("a") as another:
        assert not lock_descriptor(another.fileno(), blocking=False)
        process.kill()
        assert finished(process) == -signal.SIGKILL
        assert lock_descriptor(another.fileno(), blocking=False)


def test_a_grid_of_forks_ends_like_one_of_programs(write_grid, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "available", lambda: False)
    tasks = {"sums": {"config": "task.yaml"}}
    programs, forks = tmp_path / "programs", tmp_path / "forks"
    assert main(["--config", str(write_grid(tasks=tasks)), "--out", str(programs), "--jobs", "4"]) == 0

    monkeypatch.setattr(running, "start_fork", functools.partial(starting.start_fork, does=forked.quick))
    assert main(["--config", str(write_grid(tasks=tasks, program=None)), "--out", str(forks), "--jobs", "4"]) == 0
    assert (forks / "results.csv").read_bytes() == (programs / "results.csv").read_bytes()


def test_the_server_loads_this_projects_modules_and_leaves_others_to_the_runs(monkeypatch):
    loaded = []
    monkeypatch.setattr(starting._SERVER, "set_forkserver_preload", loaded.extend)
    inner = {"class_path": "datamodules.ClockDataModule"}
    outer = {"class_path": "smmd_lightning.losses.SMMDLoss", "init_args": {"parts": [inner, 1]}}
    starting.preload([{"model": outer}, {"x": {"class_path": "missing.X"}}])
    assert loaded == ["smmd_lightning.cli", "datamodules", "smmd_lightning.losses"]


def test_forks_and_gpus_do_not_go_together(write_grid, tmp_path):
    file = write_grid(program=None, losses={"ce": {}})
    comparison = Comparison(file, tmp_path / "out")
    with pytest.raises(ValueError, match="Forks cannot use GPUs: name a `program`"):
        Runner(load_grid(file), tmp_path / "out", Slots(1, ["0"])).run(
            comparison.plan.final({("sums", "ce"): None, ("clocks", "ce"): None})
        )
