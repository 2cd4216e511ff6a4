"""The whole of it with real trainings: two losses, two seeds, a few steps."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from smmd_lightning.commands.compare import main

ROOT = Path(__file__).parent.parent.parent
CONFIGS = ROOT / "configs"

GRID = {
    "tasks": {"arithmetic": {"config": str(CONFIGS / "compare" / "tasks" / "arithmetic.yaml")}},
    "losses": {"ce": {"label": "CE"}, "smmd": {"config": str(CONFIGS / "loss" / "smmd.yaml"), "label": "SMMD"}},
    "weights": [0.1, 1.0],
    "tune_seeds": [101],
    "seeds": [1, 2],
    "overrides": {
        "model": {"backbone": {"init_args": {"path": "tiny:llama", "from_scratch": True}}, "max_new_tokens": 3},
        "data": {"init_args": {"batch_size": 4, "generation_limit": 4, "limit": 8}},
        "trainer": {
            "accelerator": "cpu",
            "devices": 1,
            "max_steps": 6,
            "val_check_interval": 2,
            "num_sanity_val_steps": 0,
            "enable_progress_bar": False,
            "log_every_n_steps": 1,
        },
        "checkpoint": {"every_n_train_steps": 1},
        "gallery": {"every_n_validations": 0},
        "results": {"save_images": 0, "report": False},
    },
}


@pytest.mark.slow
def test_real_runs_give_real_tables_also_when_they_are_killed(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text(yaml.safe_dump(GRID, sort_keys=False))
    out, killed = tmp_path / "out", tmp_path / "killed"
    assert main(["--config", str(file), "--out", str(out), "--jobs", "2"]) == 0

    rows = list(csv.DictReader((out / "results.csv").open()))
    assert {(row["phase"], row["loss"], row["seed"]) for row in rows} == {
        ("tune", "smmd", "101"),
        ("final", "ce", "1"),
        ("final", "ce", "2"),
        ("final", "smmd", "1"),
        ("final", "smmd", "2"),
    }
    for row in rows:
        folder = out / row["run"]
        assert yaml.safe_load((folder / "config.yaml").read_text())["seed_everything"] == int(row["seed"])
        if row["split"] == "test":
            kept = json.loads((folder / "metrics.json").read_text())[f"test/{row['metric']}"]
            value = float(row["value"])  # strict JSON has null where a median is infinite: few answers were numbers
            assert kept == (pytest.approx(value) if math.isfinite(value) else None)
        else:
            assert not (folder / "predictions.jsonl").exists()  # never tested
    assert {file.name for file in (out / "plots").iterdir()} == {
        f"arithmetic-{name}.png" for name in ("final", "curves", "tolerance", "weight")
    }

    # The same again, as forks of one process, and killed.
    file.write_text(yaml.safe_dump({**GRID, "program": None}, sort_keys=False))
    command = [sys.executable, "-m", "smmd_lightning.commands.compare", "--config", str(file), "--out", str(killed)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    while len(list(killed.rglob("last.ckpt"))) < 2:  # the second run is in the middle of its training
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert main(["--config", str(file), "--out", str(killed), "--jobs", "2"]) == 0
    for name in ("results.csv", "report.md", "report.html"):
        assert (killed / name).read_bytes() == (out / name).read_bytes()
