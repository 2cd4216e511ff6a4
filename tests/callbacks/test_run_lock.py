"""Two runs never train in one folder at once, and a dead one never stands in the way."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import preloaded
import pytest
from filelock import lock_descriptor

from smmd_lightning.callbacks.run_lock import EVALUATION, lock
from smmd_lightning.checkpoints.atomic import open_to_append
from smmd_lightning.cli import main
from smmd_lightning.compare.running import LOCK

HOLD = """
import os, sys, time
from pathlib import Path
from smmd_lightning.callbacks.run_lock import lock
held = lock(Path(sys.argv[1]))
print(os.getpid(), flush=True)
time.sleep(120)
"""


@pytest.fixture
def holder(tmp_path):
    """Id of a process that holds the lock of `run`, and what waits for it."""
    command = preloaded.arguments(["-c", HOLD, str(tmp_path / "run")])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield int(process.stdout.readline()), process
    process.kill()
    process.wait()


def test_a_folder_in_use_is_refused_with_process_host_and_time(holder, tmp_path):
    with pytest.raises(RuntimeError, match=rf"run is in use by another run \(process {holder[0]} on .*, since 20"):
        lock(tmp_path / "run")
    file = tmp_path / "run" / ".lock"
    assert json.loads(file.read_text())["pid"] == holder[0]


def test_the_command_line_leaves_a_folder_in_use_as_it_is(holder, tmp_path):
    quickstart = Path(__file__).parent.parent.parent / "configs" / "experiment" / "quickstart.yaml"
    small = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--data.init_args.num_workers=0"]
    for resume in ("never", "auto"):
        with pytest.raises(RuntimeError, match=f"in use by another run .process {holder[0]}"):
            main(["fit", "--config", str(quickstart), "--run_dir", str(tmp_path / "run"), "--resume", resume, *small])
    assert not (tmp_path / "run" / "config.yaml").exists()
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_killed_run_leaves_no_lock(holder, tmp_path):
    number, process = holder
    os.kill(number, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    held = lock(tmp_path / "run")
    assert json.loads((tmp_path / "run" / ".lock").read_text())["pid"] == os.getpid()
    assert held.is_locked
    held.release()


def test_processes_that_a_run_started_do_not_hold_its_lock(tmp_path):
    """A loader's worker lives on for seconds after its run was killed; the next run need not wait for it."""
    code = HOLD.replace("time.sleep(120)", "if os.fork():\n    os._exit(0)\ntime.sleep(5)")
    started = time.monotonic()
    command = preloaded.arguments(["-c", code, str(tmp_path / "run")])
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    lock(tmp_path / "run").release()
    assert time.monotonic() - started < 60


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match=r"cannot be written to.*--run_dir"):
        lock(tmp_path / "file" / "run")


def test_a_link_in_place_of_the_lock_is_not_written_through(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RuntimeError, match="cannot be written to"):
        lock(tmp_path / "run")
    assert (tmp_path / "precious").read_text() == "precious"


def test_an_evaluation_goes_on_beside_a_training_but_not_beside_another(tmp_path):
    training, evaluation = lock(tmp_path), lock(tmp_path, EVALUATION)
    with pytest.raises(RuntimeError, match=rf"in use by another evaluation \(process {os.getpid()} "):
        lock(tmp_path, EVALUATION)
    training.release()
    evaluation.release()


def test_a_file_system_without_locks_is_named_and_used_all_the_same(tmp_path, monkeypatch, caplog):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    lock(tmp_path).release()
    assert "knows no locks" in caplog.text


def test_a_run_of_a_comparison_takes_its_own_lock_beside_the_comparisons(tmp_path):
    """On a network file system both kinds of locks are one, so they must not be of one file."""
    with open_to_append(tmp_path / LOCK) as file:
        assert lock_descriptor(file.fileno(), blocking=False)
        lock(tmp_path).release()
