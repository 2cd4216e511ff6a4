"""What an evaluation leaves behind: predictions.jsonl, some pictures, metrics.json, a page, and a table at the end."""

from __future__ import annotations

import json
import logging
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table

from smmd_lightning.callbacks.sample_gallery import counted_keys, sample_picture
from smmd_lightning.checkpoints.atomic import new_draft_folder, open_to_append, write_text
from smmd_lightning.checkpoints.drafts import give_up, remove
from smmd_lightning.report.picking import pick
from smmd_lightning.types import Batch, SampleKey

log = logging.getLogger(__name__)

LARGEST_SIDE = 512
"""Stored pictures are made smaller than this many pixels a side."""


class ResultsWriter(Callback):
    """Writes one JSONL row a sample for `test` and `predict`, and the metrics of `test`.

    Every process writes its own part as it goes; at the end they are joined in the order of the data, each sample
    once, and renamed into place.

    Args:
        predictions: File name of the rows, in the run's folder.
        metrics: File name of the metrics, in the run's folder.
        save_images: How many pictures to store under `images/`, of the worst, the best and random answers alike.
        report: Whether `test` also writes `report.html`, see `smmd-report`.

    Raises:
        ValueError: `save_images` is below 0.
    """

    def __init__(
        self,
        predictions: str = "predictions.jsonl",
        metrics: str = "metrics.json",
        save_images: int = 24,
        report: bool = True,
    ) -> None:
        if save_images < 0:
            raise ValueError(f"results.save_images must be at least 0, got {save_images}.")
        self.predictions = predictions
        self.metrics = metrics
        self.save_images = save_images
        self.report = report
        self._parts: Path | None = None
        self._part: Any = None

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens this process's part."""
        self._open(trainer)

    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Opens this process's part."""
        self._open(trainer)

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
        self._join(trainer)
        if not trainer.is_global_zero:
            return
        values = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
        folder = Path(trainer.default_root_dir)
        write_text(folder / self.metrics, json.dumps(values, indent=2) + "\n")
        report = self._write_report(folder) if self.report else None
        self._show(trainer, values, report)

    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Joins the parts."""
        self._join(trainer)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Removes the parts of an evaluation that broke off."""
        self._close(trainer)

    def _open(self, trainer: Trainer) -> None:
        """Makes a folder for the parts, named by process 0, so that evaluations side by side have one each."""
        made = new_draft_folder(Path(trainer.default_root_dir) / self.predictions) if trainer.is_global_zero else None
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

    def _join(self, trainer: Trainer) -> None:
        assert self._parts is not None
        self._part.close()
        trainer.strategy.barrier("predictions written")
        if trainer.is_global_zero:
            rows = []
            for rank in range(trainer.world_size):
                with (self._parts / str(rank)).open(encoding="ascii") as lines:
                    rows += [json.loads(line) for line in lines]
            rows.sort(key=lambda placed: placed[0])
            self._save_images(trainer, [row for _, row, _ in rows], [key and SampleKey(*key) for _, _, key in rows])
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for _, row, _ in rows)
            write_text(Path(trainer.default_root_dir) / self.predictions, text)
        self._close(trainer)
        trainer.strategy.barrier("predictions joined")

    def _save_images(self, trainer: Trainer, rows: list[dict[str, Any]], keys: list[SampleKey | None]) -> None:
        """Stores some pictures and tells their paths in the rows; samples are read again, so none had to travel."""
        folder = Path(trainer.default_root_dir) / "images"
        for old in folder.glob("[0-9]" * 6 + ".jpg"):  # of an earlier evaluation
            old.unlink()
        chosen = pick(rows, -(-self.save_images // 3))
        for number in [n for group in zip_longest(*chosen.values()) for n in group if n is not None][
            : self.save_images
        ]:
            try:
                picture = sample_picture(getattr(trainer, "datamodule", None), "test", keys[number])
                if picture is None:
                    continue
                picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
                folder.mkdir(exist_ok=True)
                picture.convert("RGB").save(folder / f"{number:06d}.jpg", quality=90)
                rows[number]["image"] = f"images/{number:06d}.jpg"
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
            table.add_row(name, f"{value:.4g}")
        folder = Path(trainer.default_root_dir)
        console = Console()
        console.print(table)
        if trainer.ckpt_path:
            console.print(f"checkpoint   {trainer.ckpt_path}", soft_wrap=True)
        console.print(f"predictions  {folder / self.predictions}", soft_wrap=True)
        console.print(f"metrics      {folder / self.metrics}", soft_wrap=True)
        if report is not None:
            console.print(f"report       {report}", soft_wrap=True)
        log_dir = getattr(trainer.logger, "log_dir", None)  # trainer.log_dir would ask all processes, and one is here
        if log_dir is not None:
            console.print(f"log          {log_dir}  (tensorboard --logdir {log_dir})", soft_wrap=True)
