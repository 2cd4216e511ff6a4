"""A run that goes on keeps the CSV log it has written, which Lightning's logger would delete."""

from __future__ import annotations

import csv
from pathlib import Path

from lightning.pytorch import Trainer
from lightning.pytorch.loggers import CSVLogger

from smmd_lightning.checkpoints.atomic import write_text
from smmd_lightning.compat.of_lightning import CSVWriter, csv_writer, use_csv_writer


class _KeptLog(CSVWriter):
    def look_at_file(self) -> None:
        file = Path(self.metrics_file_path)
        if file.is_file():
            with file.open(encoding="utf-8", newline="") as lines:
                self.metrics_keys = list(next(csv.reader(lines), []))


def keep_csv_logs(trainer: Trainer) -> None:
    """Lets the CSV loggers of a run that goes on add to their files; others, whose folder is new, stay as they are.

    Args:
        trainer: The trainer, before anything was logged.
    """
    for logger in trainer.loggers:
        if isinstance(logger, CSVLogger) and trainer.is_global_zero and csv_writer(logger) is None:
            use_csv_writer(logger, _KeptLog(log_dir=logger.log_dir))


def drop_rows_after(trainer: Trainer, step: int) -> None:
    """Takes out what was logged after the checkpoint: those steps are made, and logged, again.

    Args:
        trainer: The trainer, its checkpoint loaded.
        step: Optimizer steps that the checkpoint has made.
    """
    for logger in trainer.loggers:
        experiment = csv_writer(logger) if isinstance(logger, CSVLogger) else None
        if isinstance(experiment, _KeptLog) and Path(experiment.metrics_file_path).is_file():
            lines = Path(experiment.metrics_file_path).read_text(encoding="utf-8").splitlines(keepends=True)
            column = experiment.metrics_keys.index("step") if "step" in experiment.metrics_keys else None
            if column is None:
                continue
            kept = [line for line in lines[1:] if _step(line, column) < step]
            write_text(experiment.metrics_file_path, "".join([*lines[:1], *kept]))


def _step(line: str, column: int) -> float:
    """The step of a row; a row that a kill cut short counts as the last."""
    row = next(csv.reader([line]), [])
    try:
        return float(row[column]) if line.endswith("\n") else float("inf")
    except (IndexError, ValueError):
        return float("inf")
