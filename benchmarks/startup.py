"""Start-up: import, help, and time to the end of the first optimizer step.

    python -m benchmarks.startup

Each figure is a whole process from its start to its end, with files in the page cache. The peers are the libraries that
we stand on: what their import costs is our floor.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, gib, run, span, table

ROOT = Path(__file__).resolve().parent.parent
FIT = [
    "train.py", "fit", "--config", "configs/experiment/math_tiny.yaml", "--run_dir", "FOLDER/run",
    "--trainer.max_steps", "1", "--trainer.limit_val_batches", "0", "--trainer.val_check_interval", "null",
    "--trainer.num_sanity_val_steps", "0", "--trainer.enable_progress_bar", "false",
]  # fmt: skip
TASKS = {
    "import smmd_lightning": ["-c", "import smmd_lightning"],
    "import torch": ["-c", "import torch"],
    "import torch, smmd_lightning, its names": ["-c", "import torch; from smmd_lightning import SMMDLoss"],
    "import lightning.pytorch.cli": ["-c", "import lightning.pytorch.cli"],
    "import of TRL's SFTTrainer": ["-c", "from trl import SFTTrainer"],
    "train.py fit --help": ["train.py", "fit", "--help"],
    "train.py fit, one step (math_tiny)": FIT,
}


def process(case: Case) -> dict[str, Any]:
    """Runs one command to its end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *(part.replace("FOLDER", folder) for part in TASKS[case["task"]])]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024}


def cases(arguments: argparse.Namespace) -> list[Case]:
    """All tasks; toy: the import alone."""
    return [{"task": task} for task in list(TASKS)[: 1 if arguments.toy else None]]


def render(finished: list[dict[str, Any]]) -> str:
    """One row a task."""
    rows = [
        [found["case"]["task"], span(found["ours"]), f"{found['ours']['cpu']:.2f} s", gib(found["ours"]["peak"])]
        for found in finished
    ]
    return table(["what", "by the clock", "processor", "peak"], rows)


if __name__ == "__main__":
    run("startup", __doc__, {"ours": process}, cases, render)
