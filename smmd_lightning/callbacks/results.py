"""What an evaluation leaves behind: predictions.jsonl, metrics.json, and a short table at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table

from smmd_lightning.types import Batch


class ResultsWriter(Callback):
    """Writes one JSONL row a sample for `test` and `predict`, and the metrics of `test`.

    Every process writes its own part as it goes; at the end they are joined in the order of the data, each sample
    once, and renamed into place.

    Args:
        predictions: File name of the rows, in the run's folder.
        metrics: File name of the metrics, in the run's folder.
    """

    def __init__(self, predictions: str = "predictions.jsonl", metrics: str = "metrics.json") -> None:
        self.predictions = predictions
        self.metrics = metrics
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
        self._write(trainer, outputs, batch_idx)

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
        self._write(trainer, outputs, batch_idx)

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Joins the parts, writes the metrics and shows the table."""
        self._join(trainer)
        if not trainer.is_global_zero:
            return
        values = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
        folder = Path(trainer.default_root_dir)
        _replace(folder / self.metrics, json.dumps(values, indent=2) + "\n")
        self._show(trainer, values)

    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Joins the parts."""
        self._join(trainer)

    def _part_file(self, trainer: Trainer, rank: int) -> Path:
        return Path(trainer.default_root_dir) / f".{self.predictions}.{rank}.part"

    def _open(self, trainer: Trainer) -> None:
        file = self._part_file(trainer, trainer.global_rank)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._part = file.open("w", encoding="utf-8")

    def _write(self, trainer: Trainer, rows: list[dict[str, Any]], batch_idx: int) -> None:
        for number, row in enumerate(rows):
            place = [batch_idx, trainer.global_rank, number]  # the order in which samples are dealt out
            self._part.write(json.dumps([place, row], ensure_ascii=False) + "\n")

    def _join(self, trainer: Trainer) -> None:
        self._part.close()
        trainer.strategy.barrier("predictions written")
        if trainer.is_global_zero:
            rows = []
            parts = [self._part_file(trainer, rank) for rank in range(trainer.world_size)]
            for part in parts:
                rows += [json.loads(line) for line in part.read_text(encoding="utf-8").splitlines()]
            rows.sort(key=lambda placed: placed[0])
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for _, row in rows)
            _replace(Path(trainer.default_root_dir) / self.predictions, text)
            for part in parts:
                part.unlink()
        trainer.strategy.barrier("predictions joined")

    def _show(self, trainer: Trainer, values: dict[str, float]) -> None:
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
        console.print(f"log          {trainer.log_dir}  (tensorboard --logdir {trainer.log_dir})", soft_wrap=True)


def _replace(file: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
