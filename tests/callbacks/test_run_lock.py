"""Two runs never train in one folder at once, and a dead one never stands in the way."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import preloaded
import pytest

from smmd_lightning.callbacks.run_lock import lock
from smmd_lightning.cli import main

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
    with lock(tmp_path / "run") as held:
        assert json.loads((tmp_path / "run" / ".lock").read_text())["pid"] == os.getpid()
        assert not held.closed


def test_processes_that_a_run_started_do_not_hold_its_lock(tmp_path):
    """A loader's worker lives on for seconds after its run was killed; the next run need not wait for it."""
    code = HOLD.replace("time.sleep(120)", "if os.fork():\n    os._exit(0)\ntime.sleep(5)")
    started = time.monotonic()
    command = preloaded.arguments(["-c", code, str(tmp_path / "run")])
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    lock(tmp_path / "run").close()
    assert time.monotonic() - started < 60


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match=r"cannot be written to.*--run_dir"):
        lock(tmp_path / "file" / "run")
