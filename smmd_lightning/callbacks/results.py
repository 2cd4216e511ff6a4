"""What an evaluation leaves behind.

`test` writes predictions.jsonl, some pictures, metrics.json and a page, and shows a table; `predict` writes
answers.jsonl and touches none of the others.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smmd_lightning.callbacks.sample_gallery import counted_keys, sample_picture
from smmd_lightning.checkpoints.atomic import new_draft_folder, open_to_append, write_file, write_text
from smmd_lightning.checkpoints.drafts import give_up, remove
from smmd_lightning.report.picking import pick
from smmd_lightning.types import Batch, SampleKey

log = logging.getLogger(__name__)

LARGEST_SIDE = 512
"""Stored pictures are made smaller than this many pixels a side."""


class ResultsWriter(Callback):
    """Writes one JSONL row per sample for `test` and `predict`, and the metrics of `test`.

    Every process writes its own part as it goes; at the end they are joined in the order of the data, each sample
    once, and renamed into place.

    Args:
        predictions: File name of the rows of `test`, in the run's folder.
        metrics: File name of the metrics, in the run's folder.
        save_images: How many pictures to store under `images/`, of the worst, the best and random answers alike.
        report: Whether `test` also writes `report.html`, see `smmd-report`.
        answers: File name of the rows of `predict`, in the run's folder.

    Raises:
        ValueError: `save_images` is below 0, or `predict` would overwrite the file of `test`.
    """

    def __init__(
        self,
        predictions: str = "predictions.jsonl",
        metrics: str = "metrics.json",
        save_images: int = 24,
        report: bool = True,
        answers: str = "answers.jsonl",
    ) -> None:
        if save_images < 0:
            raise ValueError(f"results.save_images must be at least 0, got {save_images}.")
        if answers == predictions:
            raise ValueError(
                f"results.answers and results.predictions are both {answers!r}; give predict its own file."
            )
        self.predictions = predictions
        self.answers = answers
        self.metrics = metrics
        self.save_images = save_images
        self.report = report
        self._parts: Path | None = None
        self._part: Any = None

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens this process's part."""
        self._open(trainer, self.predictions)

    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens this process's part."""
        self._open(trainer, self.answers)

    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Writes the rows of one batch."""
        self._write(trainer, outputs, batch, batch_idx)

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Writes the rows of one batch."""
        self._write(trainer, outputs, batch, batch_idx)

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Joins the parts, writes the metrics and shows the table."""
        self._join(trainer, self.predictions, save_images=True)
        if not trainer.is_global_zero:
            return
        values = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
        folder = Path(trainer.default_root_dir)
        write_text(folder / self.metrics, metrics_text(values))
        report = self._write_report(folder) if self.report else None
        self._show(trainer, values, report)

    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Joins the parts and says where the answers are."""
        self._join(trainer, self.answers, save_images=False)
        if trainer.is_global_zero:
            self._say(Console(), {"answers": Path(trainer.default_root_dir) / self.answers})

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Removes the parts of an evaluation that broke off."""
        self._close(trainer)

    def _open(self, trainer: Trainer, name: str) -> None:
        """Makes a folder for the parts, named by process 0, so that evaluations side by side have one each."""
        made = new_draft_folder(Path(trainer.default_root_dir) / name) if trainer.is_global_zero else None
        self._parts = trainer.strategy.broadcast(made)
        assert self._parts is not None
        self._part = open_to_append(self._parts / str(trainer.global_rank))

    def _close(self, trainer: Trainer) -> None:
        if self._part is not None:
            self._part.close()
        if self._parts is not None and trainer.is_global_zero:
            remove(self._parts)
            give_up(self._parts)
        self._part = self._parts = None

    def _write(self, trainer: Trainer, rows: list[dict[str, Any]], batch: Batch, batch_idx: int) -> None:
        for number, (row, key) in enumerate(zip(rows, counted_keys(batch, len(rows)), strict=True)):
            place = [batch_idx, trainer.global_rank, number]  # the order in which samples are dealt out
            # Data sets hold dates, decimals and the like among their facts.
            self._part.write((json.dumps([place, row, key], default=str) + "\n").encode())

    def _join(self, trainer: Trainer, name: str, save_images: bool) -> None:
        assert self._parts is not None
        self._part.close()
        trainer.strategy.barrier("predictions written")
        if trainer.is_global_zero:
            rows = []
            for rank in range(trainer.world_size):
                with (self._parts / str(rank)).open(encoding="ascii") as lines:
                    rows += [json.loads(line) for line in lines]
            rows.sort(key=lambda placed: placed[0])
            if save_images:
                keys = [key and SampleKey(*key) for _, _, key in rows]
                self._save_images(trainer, [row for _, row, _ in rows], keys)
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for _, row, _ in rows)
            write_text(Path(trainer.default_root_dir) / name, text)
        self._close(trainer)
        trainer.strategy.barrier("predictions joined")

    def _save_images(self, trainer: Trainer, rows: list[dict[str, Any]], keys: list[SampleKey | None]) -> None:
        """Stores some pictures and tells their paths in the rows; samples are read again, so none had to travel."""
        folder = Path(trainer.default_root_dir) / "images"
        if folder.is_symlink():
            log.warning("%s is a link, which is not followed: no pictures are stored", folder)
            return
        for old in folder.glob("[0-9]" * 6 + ".jpg"):  # of an earlier evaluation
            old.unlink()
        stored = 0
        for number in shown_first(rows, self.save_images) if self.save_images else []:
            if stored == self.save_images:
                break
            try:
                picture = sample_picture(getattr(trainer, "datamodule", None), "test", keys[number])
                if picture is None:
                    continue
                picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
                whole = picture.convert("RGB")
                write_file(folder / f"{number:06d}.jpg", partial(whole.save, format="JPEG", quality=90))
                rows[number]["image"] = f"images/{number:06d}.jpg"
                stored += 1
            except Exception as error:  # predictions matter more than a picture of one
                log.warning("%s: its picture was not stored (%s: %s)", rows[number]["id"], type(error).__name__, error)

    def _write_report(self, folder: Path) -> Path | None:
        from smmd_lightning.report import write_report

        try:
            return write_report(folder, predictions=self.predictions, metrics=self.metrics)
        except Exception as error:  # the evaluation itself is done and safe
            log.warning("%s: no report was written (%s: %s)", folder, type(error).__name__, error)
            return None

    def _show(self, trainer: Trainer, values: dict[str, float], report: Path | None) -> None:
        table = Table(title="Test", show_header=False)
        for name, value in values.items():
            table.add_row(Text(name), f"{value:.4g}")
        folder = Path(trainer.default_root_dir)
        console = Console()
        console.print(table)
        places = {"checkpoint": trainer.ckpt_path} if trainer.ckpt_path else {}
        places |= {"predictions": folder / self.predictions, "metrics": folder / self.metrics}
        if report is not None:
            places["report"] = report
        log_dir = getattr(trainer.logger, "log_dir", None)  # trainer.log_dir would ask all processes, and one is here
        if log_dir is not None:
            places["log"] = f"{log_dir}  (tensorboard --logdir {log_dir})"
        self._say(console, places)

    @staticmethod
    def _say(console: Console, places: dict[str, Any]) -> None:
        """Prints where the files are; a path may hold what a terminal library would take for markup."""
        for name, place in places.items():
            console.print(f"{name:<13}{place}", markup=False, highlight=False, soft_wrap=True)


def metrics_text(values: Mapping[str, float]) -> str:
    r"""Writes metrics as strict JSON; a value that is not finite becomes null.

    >>> metrics_text({"test/exact_match": 0.5, "test/mean_error": float("nan")})
    '{\n  "test/exact_match": 0.5,\n  "test/mean_error": null\n}\n'
    """
    kept = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return json.dumps(kept, indent=2, allow_nan=False) + "\n"


def shown_first(rows: Sequence[dict[str, Any]], count: int) -> list[int]:
    """Returns all row numbers, those to look at first: the worst, random and best by turns, then the others.

    Args:
        rows: Rows of the prediction file.
        count: How many will be shown.
    """
    chosen = pick(rows, -(-count // 3))
    first = [number for group in zip_longest(*chosen.values()) for number in group if number is not None]
    return [*first, *sorted(set(range(len(rows))) - set(first))]
