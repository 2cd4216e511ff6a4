"""Transformers' `Trainer` with cross-entropy and any numeric loss, exact over accumulation windows and processes.

Unusual: the cross-entropy is divided by the supervised tokens, and the numeric loss by the numeric tokens, of the whole
optimizer step. The trainer fetches all micro-batches of a step first, so both can be counted before training on the
first. `compute_loss_func` is not used: it needs full logits.

Shape legend: B rows, T positions of a row.

One real example::

    trainer = SMMDTrainer(
        model=model, args=arguments, train_dataset=rows, processing_class=tokenizer,
        numeric_loss=SMMDLoss(), loss_weight=0.3,
    )
    trainer.train()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Trainer

from smmd_lightning.loss_sums import StepCounts
from smmd_lightning.losses import NumericLoss
from smmd_lightning.losses.scope import Scope
from smmd_lightning.objective import NumericObjective
from smmd_lightning.trainers.wrapped_model import score_wrapped
from smmd_lightning.vocabulary import NumericVocabulary

if TYPE_CHECKING:
    _Trainer = Trainer
else:
    _Trainer = object


class NumericTraining(_Trainer):
    """What a `Trainer` needs to train with a numeric loss; stands before the trainer's class among the bases.

    Args:
        numeric_loss: The numeric loss. None: cross-entropy alone, by the same path.
        loss_weight: Lambda, the weight of the numeric loss beside the cross-entropy.
        vocabulary: The numeric tokens. None: those of `processing_class`.
        scope: Whether the numeric loss acts on the last number of each answer ("answer") or on all ("all").
        head_chunk: Most supervised positions that pass through the head at once.
        *args: Of the trainer.
        **kwargs: Of the trainer.

    Raises:
        ValueError: `compute_loss_func`, label smoothing or `loss_weight="auto"` is asked for, or the vocabulary does
            not fit the model.
    """

    objective: NumericObjective

    def __init__(
        self,
        *args: Any,
        numeric_loss: NumericLoss | None = None,
        loss_weight: float = 1.0,
        vocabulary: NumericVocabulary | None = None,
        scope: Scope = "all",
        head_chunk: int = 2048,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError("compute_loss_func needs full logits and replaces the loss; leave it out.")
        super().__init__(*args, **kwargs)
        if self.args.label_smoothing_factor:
            raise ValueError(
                f"label_smoothing_factor={self.args.label_smoothing_factor} would change the cross-entropy alone. "
                "Take GaussianSmoothingLoss as numeric_loss, and 0 here."
            )
        if self.args.n_gpu > 1:
            raise ValueError(f"{self.args.n_gpu} GPUs in one process are not supported; start one process per GPU.")
        if loss_weight == "auto":
            raise ValueError(
                "loss_weight: auto is for SMMDModule, whose checkpoints keep what it measured; give a number here."
            )
        if head_chunk < 1:
            raise ValueError(f"head_chunk must be at least 1, got {head_chunk}.")
        self.head_chunk = head_chunk
        self.objective = NumericObjective(numeric_loss, loss_weight, scope=scope)
        if vocabulary is None and numeric_loss is not None:
            tokenizer: Any = getattr(self.processing_class, "tokenizer", self.processing_class)
            if tokenizer is None:
                raise ValueError("Give processing_class (a tokenizer or processor) or vocabulary.")
            vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
        plain: Any = self.accelerator.unwrap_model(self.model)
        head_VD = plain.get_output_embeddings().weight
        self.objective.bind(vocabulary, int(head_VD.shape[0]), head_VD)
        self.objective.to(self.args.device)
        self.model_accepts_loss_kwargs = True  # the loss below divides by the whole step, so the trainer must not
        self._counts: StepCounts | None = None
        self._parts = torch.zeros(4, dtype=torch.float64)

    def get_batch_samples(self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device) -> Any:
        """Fetches the micro-batches of one optimizer step and counts what it divides by."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        count_2 = torch.zeros(2, dtype=torch.float64, device=device)
        for batch in batches:
            labels_BT = batch["labels"].to(device)
            count_2 += self.objective.count(labels_BT[:, 1:])
        total_2 = self.accelerator.reduce(count_2, reduction="sum") / self.accelerator.num_processes
        self._counts = StepCounts(*total_2.tolist())
        return batches, items

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Computes this micro-batch's share of the loss of its optimizer step.

        Args:
            model: The model as the trainer has wrapped it.
            inputs: Inputs of the model, with `labels`.
            return_outputs: Whether the model's own outputs, with full logits, are wanted too: another forward pass.
            num_items_in_batch: The trainer's own count; not used.
        """
        if "shift_labels" in inputs:
            raise ValueError("labels that are shifted already (context parallelism) are not supported.")
        labels_BT: Tensor = inputs["labels"]
        inputs = {name: value for name, value in inputs.items() if name not in ("labels", "use_cache")}
        plain = self.accelerator.unwrap_model(model)

        def backbone(given: dict[str, Any], labels: Tensor, score: Any) -> tuple[Tensor, ...]:
            return score_wrapped(model, given, labels, score, chunk=self.head_chunk, plain=plain)

        counts = self._counts if model.training else None
        output = self.objective(backbone, inputs, labels_BT, counts)
        if model.training:
            sums = torch.stack([output.metrics["ce_sum"], output.metrics["numeric_sum"]]).double().cpu()
            self._parts += torch.cat([sums, torch.tensor([output.supervised, output.numeric], dtype=torch.float64)])
        if not return_outputs:
            return output.loss
        with torch.no_grad():
            return output.loss, model(**inputs, use_cache=False)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs, with the means `ce` and `numeric` since the last time, over all processes."""
        total_4 = self.accelerator.reduce(self._parts.to(self.args.device), reduction="sum")
        self._parts.zero_()
        ce, numeric, supervised, numbers = total_4.tolist()
        if supervised:
            logs = logs | {"ce": ce / supervised, "numeric": numeric / max(numbers, 1.0)}
        super().log(logs, *args, **kwargs)


class SMMDTrainer(NumericTraining, Trainer):
    """Transformers' `Trainer` with cross-entropy and a numeric loss; see `NumericTraining`."""
