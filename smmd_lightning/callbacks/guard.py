"""Stops a run that cannot become good, and says why and what to change.

Unusual: an optimizer step whose loss or gradient is NaN or infinite is not applied (its gradients are dropped on all
processes), so weights, optimizer and `last.ckpt` stay whole while the ids of its samples are written down; several such
steps in a row end the run. Known causes of death (memory, a loader's worker) get a line of advice behind their own
message.

One real example, a line of `bad_steps.jsonl`::

    {"step": 120, "rank": 0, "loss": "nan", "gradient": "nan", "ids": ["train-0-17", "train-0-4"]}
"""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torch.optim import Optimizer

from smmd_lightning.callbacks.checks import check_run
from smmd_lightning.callbacks.monitor_checks import check_monitored
from smmd_lightning.checkpoints.atomic import append_text
from smmd_lightning.compat.messages import is_failed_allocation, is_worker_death
from smmd_lightning.compat.of_torch import largest_of_each

log = logging.getLogger(__name__)

FILE = "bad_steps.jsonl"


class Guard(Callback):
    """Checks settings before weights load; watches the loss; explains why a run ended.

    Args:
        max_bad_steps: The run ends after so many optimizer steps in a row whose loss or gradient was NaN or infinite.

    Raises:
        ValueError: `max_bad_steps` is below 1, or (at set-up) settings cannot work together.
        RuntimeError: While training, when `max_bad_steps` is reached.
    """

    def __init__(self, max_bad_steps: int = 3) -> None:
        if max_bad_steps < 1:
            raise ValueError(f"max_bad_steps must be at least 1, got {max_bad_steps}.")
        self.max_bad_steps = max_bad_steps
        self.in_a_row = 0
        self.total = 0
        self._open()

    def _open(self) -> None:
        self._ids: list[str] = []
        self._losses: list[Tensor] = []

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Checks the settings; weights are not there yet.

        Raises:
            ValueError: They cannot work together; says what to change.
        """
        check_run(trainer, pl_module, stage)

    def on_sanity_check_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Checks that what callbacks wait for is there.

        Raises:
            ValueError: A monitored metric is not logged.
        """
        check_monitored(trainer)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets an unfinished accumulation window: it comes again."""
        self._open()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Notes the samples."""
        self._ids += [example.id for example in getattr(batch, "examples", ())]

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Notes the loss of a micro-batch."""
        self._losses.append(loss.detach())

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer) -> None:
        """Drops the gradients of a step if they or its loss are no finite numbers, on all processes together.

        Raises:
            RuntimeError: It is the last of `max_bad_steps` in a row.
        """
        losses = torch.stack(self._losses).float() if self._losses else torch.zeros(1, device=pl_module.device)
        # A gradient scaler (16-mixed) finds bad gradients by itself, and must see them to lower its scale.
        scaled = getattr(trainer.precision_plugin, "scaler", None) is not None
        largest = torch.zeros(1) if scaled else largest_gradient(pl_module)
        loss, gradient = torch.stack([losses.sum(), largest.to(losses).sum()]).tolist()
        ids = self._ids
        self._open()
        bad = not (math.isfinite(loss) and math.isfinite(gradient))
        if not trainer.strategy.reduce_boolean_decision(bad, all=False):
            self.in_a_row = 0
            return
        self.in_a_row += 1
        self.total += 1
        file = Path(trainer.default_root_dir) / FILE
        found = {"loss": str(loss), "gradient": str(gradient)}
        _note(file, {"step": trainer.global_step, "rank": trainer.global_rank, **found, "ids": ids})
        log.warning(
            "step %d: the loss is %s and the largest gradient %s, so the step is not applied (%d in a row, %d in all); "
            "its samples are in %s",
            *(trainer.global_step, loss, gradient, self.in_a_row, self.total, file),
        )
        if self.in_a_row >= self.max_bad_steps:
            raise RuntimeError(
                f"The loss or its gradient was NaN or infinite in {self.in_a_row} optimizer steps in a row, last at "
                f"step {trainer.global_step}; none of them was applied, and {file} lists their samples. Lower the "
                "learning rate (or warm up longer), set trainer.gradient_clip_val, compute in bf16-mixed or 32-true "
                f"instead of {trainer.precision}, or look at those samples; then go on with --resume auto."
            )
        if not scaled:
            optimizer.zero_grad(set_to_none=True)  # optimizers pass over parameters without a gradient

    def state_dict(self) -> dict[str, Any]:
        """Returns the counts."""
        return {"in_a_row": self.in_a_row, "total": self.total}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the counts of a checkpoint."""
        self.in_a_row, self.total = state_dict["in_a_row"], state_dict["total"]

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Puts advice behind the message of an error with a known cause."""
        advice = advice_on(exception)
        if advice is not None:
            exception.add_note(advice)


def largest_gradient(module: torch.nn.Module) -> Tensor:
    """Returns the largest absolute value in this process's gradients, (1,) float32; NaN where there is one.

    Args:
        module: The model; a parameter that is spread over processes counts with its own part.
    """
    parts = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    parts = [part.to_local() if hasattr(part, "to_local") else part for part in parts]
    parts = [part.coalesce().values() if part.is_sparse else part for part in parts]
    parts = [part for part in parts if part.numel()]
    if not parts:
        return torch.zeros(1)
    # The largest value, not the usual norm: sums of squares of float16 would overflow by themselves.
    return torch.stack([value.float() for value in largest_of_each(parts)]).max()[None]


def advice_on(error: BaseException) -> str | None:
    """Returns what to change after an error, or None where its message says it already.

    >>> advice_on(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed.")).split(":")[0]
    "A loader's worker process died"
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or is_failed_allocation(error):
        return (
            "Out of memory. Lower data.batch_size and raise trainer.accumulate_grad_batches by the same factor (the "
            "result is the same), lower model.backbone.head_chunk, data.max_length or the image size "
            "(data.image_options), set model.backbone.gradient_checkpointing, train an adapter (LoRA), or spread the "
            "model over more GPUs (configs/trainer/fsdp2.yaml). While validating, lower data.eval_batch_size."
        )
    if is_worker_death(error):
        return (
            "A loader's worker process died: most often the system killed it for want of memory, or /dev/shm is too "
            "small for its batches. Lower data.num_workers (0 shows the error of a sample itself), data.batch_size or "
            "the image size, or enlarge /dev/shm; then go on with --resume auto."
        )
    return None


def _note(file: Path, line: dict[str, Any]) -> None:
    try:
        append_text(file, json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        log.warning("%s could not be written (%s): %s", file, error, line)
