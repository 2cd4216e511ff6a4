"""One run of a comparison in a process of its own: the command line's `fit`, then `validate` or `test`.

Unusual: the result is written last and whole, with the hash of the settings that it belongs to. There is no other mark
of a finished run, so a process that dies at any moment leaves a run that goes on from its newest checkpoint.

The same by hand, for a run in the folder RUN::

    smmd fit  --config RUN/settings.yaml --run_dir RUN --resume auto
    smmd test --config RUN/settings.yaml --run_dir RUN --ckpt_path RUN/checkpoints/last.ckpt
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smmd_lightning.checkpoints.atomic import write_text

SETTINGS, ORDER = "settings.yaml", "order.json"


def result_file(folder: Path, stage: str) -> Path:
    """Where the result of a stage is written."""
    return folder / f"result.{stage}.json"


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the run whose folder is the only argument; `settings.yaml` and `order.json` say what to do.

    Raises:
        ValueError: Not exactly one argument.
        RuntimeError: Training left no checkpoint.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if len(argv) != 1:
        raise ValueError(f"one_run takes the folder of a run and nothing else, got {argv}.")
    folder = Path(argv[0])
    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    began = time.monotonic()
    trainer = run_stages(folder, order["stage"], order["checkpoint"])
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


def run_stages(folder: Path, stage: str, checkpoint: str) -> Any:
    """Trains, or goes on, then evaluates a checkpoint.

    Args:
        folder: The run's folder.
        stage: `validate` or `test`.
        checkpoint: `last` or `best`.

    Returns:
        The trainer of the evaluation.
    """
    from smmd_lightning.cli import main as command_line

    common = ["--config", str(folder / SETTINGS), "--run_dir", str(folder)]
    command_line(["fit", *common, "--resume", "auto"])
    file = folder / "checkpoints" / f"{checkpoint}.ckpt"
    if not file.exists():
        raise RuntimeError(f"{file} was not written: training ended before its first checkpoint.")
    return command_line([stage, *common, "--ckpt_path", str(file)]).trainer


if __name__ == "__main__":
    main()
