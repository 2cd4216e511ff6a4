"""One run of a comparison in a process of its own: the command line's `fit`, then `validate` or `test`.

Unusual: the result is written last and whole, with the hash of the settings that it belongs to. There is no other mark
of a finished run, so a process that dies at any moment leaves a run that goes on from its newest checkpoint.

Keys and passwords are `***` in `settings.yaml`. A run that has such settings gets them in its environment, which other
users of the machine cannot read.

The same by hand, for a run in the folder RUN::

    smmd fit  --config RUN/settings.yaml --run_dir RUN --resume auto
    smmd test --config RUN/settings.yaml --run_dir RUN --ckpt_path RUN/checkpoints/last.ckpt
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smmd_lightning.checkpoints.atomic import write_text
from smmd_lightning.masking import MaskedStream

SETTINGS, ORDER = "settings.yaml", "order.json"
WHOLE_SETTINGS = "SMMD_COMPARE_SETTINGS"
"""Variable of the environment with a run's settings as JSON, where those in the file are masked."""


def result_file(folder: Path, stage: str) -> Path:
    """Where the result of a stage is written."""
    return folder / f"result.{stage}.json"


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the run whose folder is the only argument; `settings.yaml` and `order.json` say what to do.

    Raises:
        ValueError: Not exactly one argument.
        RuntimeError: Training left no checkpoint, or the file's settings are masked and the environment has no others.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if len(argv) != 1:
        raise ValueError(f"one_run takes the folder of a run and nothing else, got {argv}.")
    folder = Path(argv[0])
    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    config = str(folder / SETTINGS)
    if order.get("masked"):
        if WHOLE_SETTINGS not in os.environ:
            raise RuntimeError(
                f"{config} shows *** in place of keys, and {WHOLE_SETTINGS} is not set. Let smmd-compare start this "
                "run; a `program` of the grid must hand its environment on."
            )
        config = os.environ[WHOLE_SETTINGS]  # as text, never in a file
        secret = json.loads(config)
        # Not for a while only: an error is printed after this function has ended, into the run's log.
        sys.stdout, sys.stderr = MaskedStream(sys.stdout, secret), MaskedStream(sys.stderr, secret)
    began = time.monotonic()
    trainer = run_stages(folder, order["stage"], order["checkpoint"], config)
    if not trainer.is_global_zero:
        return
    prefix = {"validate": "val/", "test": "test/"}[order["stage"]]
    metrics = {
        name.removeprefix(prefix): float(value)
        for name, value in sorted(trainer.callback_metrics.items())
        if name.startswith(prefix)
    }
    result = {"hash": order["hash"], "stage": order["stage"], "metrics": metrics, "seconds": time.monotonic() - began}
    write_text(result_file(folder, order["stage"]), json.dumps(result, indent=2) + "\n")
    if not order["keep_checkpoints"]:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def run_stages(folder: Path, stage: str, checkpoint: str, config: str) -> Any:
    """Trains, or goes on, then evaluates a checkpoint.

    Args:
        folder: The run's folder.
        stage: `validate` or `test`.
        checkpoint: `last` or `best`.
        config: File of the settings, or the settings as JSON.

    Returns:
        The trainer of the evaluation.
    """
    from smmd_lightning.cli import main as command_line

    common = ["--config", config, "--run_dir", str(folder)]
    command_line(["fit", *common, "--resume", "auto"])
    file = folder / "checkpoints" / f"{checkpoint}.ckpt"
    if not file.exists():
        raise RuntimeError(f"{file} was not written: training ended before its first checkpoint.")
    return command_line([stage, *common, "--ckpt_path", str(file)]).trainer


if __name__ == "__main__":
    main()
