"""Short runs, killed and damaged at random points with fixed seeds: every one goes on and ends as one left alone.

`SMMD_KILLS=200 SMMD_SIGNALS=200 pytest -m slow tests/cases/test_random_kills.py` for more of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KILLS = int(os.environ.get("SMMD_KILLS", "6"))
SIGNALS = int(os.environ.get("SMMD_SIGNALS", "21"))
SEED = int(os.environ.get("SMMD_SEED", "7"))


def run(folder, count, *variants):
    """Runs `killing.py`; returns its lines and the finished process."""
    paths = os.pathsep.join([str(HERE.parent / "distributed"), str(HERE.parent.parent)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": paths}
    command = [sys.executable, str(HERE / "killing.py"), str(folder), str(count), str(SEED), *variants]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    return lines, done


@pytest.mark.slow
@pytest.mark.timeout(120 + 60 * SIGNALS)
def test_a_run_struck_by_any_signal_ends_as_one_left_alone(tmp_path):
    lines, done = run(tmp_path, SIGNALS, "all")
    assert [line["trial"] for line in lines] == list(range(SIGNALS)), done.stderr[-3000:]
    assert not [line for line in lines if "failed" in line]


@pytest.mark.slow
@pytest.mark.timeout(120 + 60 * KILLS)
def test_a_run_killed_anywhere_ends_as_one_left_alone(tmp_path):
    lines, done = run(tmp_path, KILLS)
    assert lines[0]["points"] > 100
    assert [line["trial"] for line in lines[1:]] == list(range(KILLS)), done.stderr[-3000:]
    assert not [line for line in lines if "failed" in line]
    killed = [line for line in lines[1:] if any(step.endswith("-9") for step in line["done"])]
    assert len(killed) >= 0.9 * KILLS
