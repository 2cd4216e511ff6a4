"""What is about to run, on one screen, and kept as `facts.json` for the report.

One real example::

    model           tiny:qwen2-vl (Qwen2VLForConditionalGeneration)
    parameters      1.17 M, trained 1.17 M (100 %)
    numbers         NumericVocabulary(10 tokens, values 0 to 9)
    loss            cross-entropy + 0.3 x SMMDLoss
    data            ClockDataModule: train 20,000, val 500, test 500
    batch           16 = 16 x 1 accumulated x 1 process
    …
"""

from __future__ import annotations

import json
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from smmd_lightning._version import __version__
from smmd_lightning.callbacks.digit_coverage import of_training
from smmd_lightning.checkpoints.atomic import write_text

FILE = "facts.json"
PACKAGES = ("torch", "lightning", "transformers", "peft")


class StartSummary(Callback):
    """Prints what is about to run and keeps it, with the time each stage took, as `facts.json` in the run's folder."""

    def __init__(self) -> None:
        self._began = 0.0
        self._before = 0.0

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Turns off the bars of transformers where they would fill a log file."""
        if not sys.stderr.isatty():
            from transformers.utils import logging

            logging.disable_progress_bar()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Prints and writes everything."""
        self._begin(trainer, "fit", collect(trainer, pl_module))

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes what is not known yet of this run."""
        self._begin(trainer, "test", collect(trainer, pl_module))

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Adds the time it took."""
        self._finish(trainer, "fit")

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Adds the time it took."""
        self._finish(trainer, "test")

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Adds the time until a run was broken off."""
        if trainer.training:
            self._finish(trainer, "fit")

    def _begin(self, trainer: Trainer, stage: str, facts: dict[str, str]) -> None:
        if not trainer.is_global_zero:
            return
        known = read_facts(trainer)
        # A test adds to what training wrote; training, resumed or not, states what holds from now on.
        merged = {**known, **facts} if stage == "fit" else {**facts, **known}
        self._began = time.monotonic()
        going_on = stage == "fit" and trainer.ckpt_path is not None
        self._before = merged.get("seconds", {}).get(stage, 0.0) if going_on else 0.0
        write_facts(trainer, merged)
        show(facts if stage == "fit" else {name: facts[name] for name in ("model", "data", "hardware", "folder")})

    def _finish(self, trainer: Trainer, stage: str) -> None:
        if not trainer.is_global_zero or not self._began:
            return
        facts = read_facts(trainer)
        seconds = self._before + time.monotonic() - self._began
        facts["seconds"] = {**facts.get("seconds", {}), stage: round(seconds, 1)}
        if torch.cuda.is_available():
            facts[f"peak GPU memory, {stage}"] = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
        write_facts(trainer, facts)


def collect(trainer: Trainer, module: Any) -> dict[str, str]:
    """Returns facts about a run by name; what does not apply to the module or its data is left out."""
    facts: dict[str, str] = {}
    backbone = getattr(module, "backbone", None)
    if backbone is not None and backbone.loaded:
        facts["model"] = f"{backbone.path} ({type(backbone.causal).__name__})"
    total = sum(parameter.numel() for parameter in module.parameters())
    trained = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    facts["parameters"] = f"{amount(total)}, trained {amount(trained)} ({100 * trained / max(total, 1):.3g} %)"
    objective = getattr(module, "objective", None)
    if objective is not None:
        loss = objective.numeric_loss
        facts["loss"] = "cross-entropy"
        if loss is not None:
            weight = objective.loss_weight if objective.loss_weight == "auto" else f"{objective.loss_weight:g}"
            facts["loss"] += f" + {weight} x {type(loss).__name__}"
            if loss.vocabulary is not None:
                facts["numbers"] = repr(loss.vocabulary)
                if trainer.training and (found := of_training(trainer, module.tokenizer, loss.vocabulary)):
                    facts["numbers"] += f", {found}"
    facts |= _data(trainer)
    limit = f"{trainer.max_steps:,} steps" if trainer.max_steps > 0 else f"{trainer.max_epochs} epochs"
    facts["length"] = limit
    facts["precision"] = str(trainer.precision)
    facts["strategy"] = f"{type(trainer.strategy).__name__}, {trainer.world_size} process(es)"
    facts["hardware"] = hardware(trainer)
    versions = [f"smmd_lightning {__version__}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]
    facts["versions"] = ", ".join([*versions, f"Python {platform.python_version()}"])
    facts["folder"] = str(trainer.default_root_dir)
    return facts


def _data(trainer: Trainer) -> dict[str, str]:
    data: Any = getattr(trainer, "datamodule", None)
    if data is None or not hasattr(data, "size"):
        return {}
    fitting = trainer.training or trainer.sanity_checking
    splits = ("train", "val")[: 2 if trainer.limit_val_batches else 1] if fitting else ("test",)
    sizes = ", ".join(f"{split} {data.size(split):,}" for split in splits)
    facts = {"data": f"{type(data).__name__}: {sizes}"}
    if fitting:
        accumulated, processes = trainer.accumulate_grad_batches, trainer.world_size
        effective = data.batch_size * accumulated * processes
        facts["batch"] = f"{effective} = {data.batch_size} x {accumulated} accumulated x {processes} process(es)"
    return facts


def hardware(trainer: Trainer) -> str:
    """Names what computes: GPUs, or the processor with its threads."""
    device = trainer.strategy.root_device
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory / 2**30
        return f"{trainer.world_size} x {torch.cuda.get_device_name(device)} ({memory:.0f} GiB)"
    return f"{device.type}, {platform.processor() or platform.machine()}, {torch.get_num_threads()} thread(s) a process"


def amount(count: int) -> str:
    """Writes a number of parameters.

    >>> [amount(count) for count in (950, 1_170_000, 7_620_000_000)]
    ['950', '1.17 M', '7.62 G']
    """
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


def show(facts: dict[str, str], console: Console | None = None) -> None:
    """Prints facts, one per line."""
    table = Table.grid(padding=(0, 3, 0, 0))
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(fact, overflow="fold"))
    (console or Console()).print(table)


def read_facts(trainer: Trainer) -> dict[str, Any]:
    """Facts that earlier stages wrote; none if the file cannot be read."""
    try:
        found = json.loads((Path(trainer.default_root_dir) / FILE).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def write_facts(trainer: Trainer, facts: dict[str, Any]) -> None:
    """Writes the facts, whole or not at all."""
    write_text(Path(trainer.default_root_dir) / FILE, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
