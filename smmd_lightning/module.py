"""The LightningModule: a backbone, the objective, and metrics over generated answers.

Training logs means over one optimizer step. Validation has two loaders, one with answers (teacher forcing: `val/ce`,
`val/numeric`, `val/loss`) and one with prompts (generation: `val/exact_match`, …); test and predict generate.

Shape legend: B rows, T positions, S supervised positions of an accumulation window.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from lightning.pytorch.core.mixins.hparams_mixin import _given_hyperparameters
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from smmd_lightning.backbones.base import Backbone
from smmd_lightning.distributions import NumericRecorder
from smmd_lightning.losses import NumericLoss
from smmd_lightning.metrics import MetricsByTask
from smmd_lightning.numbers import NumericVocabulary
from smmd_lightning.objective import NumericObjective, StepCounts
from smmd_lightning.processors import load_processor
from smmd_lightning.resume import begin_next_epoch, draw_anew, settle_counters
from smmd_lightning.schedules import WarmUpAndDecay
from smmd_lightning.settings import describe
from smmd_lightning.strategies import ShardedStrategy
from smmd_lightning.types import Batch, LossOutput, VocabularyOptions

log = logging.getLogger(__name__)


class SMMDModule(LightningModule):
    """Fine-tunes a language or vision-language model to answer with numbers.

    Args:
        backbone: The model to train; its weights load in `configure_model`.
        numeric_loss: The numeric loss. None: cross-entropy alone.
        loss_weight: Lambda, the weight of the numeric loss beside the cross-entropy.
        optimizer: Makes the optimizer of the trained parameters.
        lr_scheduler: Makes the learning-rate schedule, stepped once an optimizer step. None: constant rate.
        vocabulary: Which tokens count as numbers.
        max_new_tokens: Most tokens of a generated answer.
        watch: The metric of generated answers shown in the progress bar, without `val/`.
        save_trained_only: Whether checkpoints leave out the weights that are frozen.
        save_distributions: Whether predictions also tell expected value and spread of each number.
        weight_schedule: Shares of `loss_weight` over the optimizer steps of the training. None: all of it, always.

    Raises:
        ValueError: A setting is out of its range.
    """

    def __init__(
        self,
        backbone: Backbone,
        numeric_loss: NumericLoss | None = None,
        loss_weight: float = 1.0,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        lr_scheduler: LRSchedulerCallable | None = None,
        vocabulary: VocabularyOptions = VocabularyOptions(),  # noqa: B008 (frozen)
        max_new_tokens: int = 32,
        watch: str = "exact_match",
        save_trained_only: bool = False,
        save_distributions: bool = False,
        weight_schedule: WarmUpAndDecay | None = None,
    ) -> None:
        super().__init__()
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}.")
        self.backbone = backbone
        self.objective = NumericObjective(numeric_loss, loss_weight)
        self.weight_schedule = weight_schedule
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.vocabulary = vocabulary
        self.max_new_tokens = max_new_tokens
        self.watch = watch
        self.save_trained_only = save_trained_only
        self.save_distributions = save_distributions
        self.metrics = MetricsByTask()
        self._window = _Window()
        self._eval_sums: Tensor | None = None
        self._without_numbers = 0
        self._keep_settings(numeric_loss)

    # -- set-up ---------------------------------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Loads the weights and binds the objective to the model's numeric vocabulary; a second call does nothing."""
        if self.backbone.loaded:
            return
        strategy = None if self._trainer is None else self.trainer.strategy
        if isinstance(strategy, ShardedStrategy):
            strategy.load_backbone(self.backbone)
        else:
            self.backbone.load()
        processor = load_processor(
            self.backbone.path, revision=self.backbone.revision, trust_remote_code=self.backbone.trust_remote_code
        )
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.numbers: NumericVocabulary | None = None
        if self.objective.numeric_loss is not None or self.save_distributions:
            self.numbers = NumericVocabulary.from_tokenizer(self.tokenizer, **asdict(self.vocabulary))
        self.objective.bind(self.numbers, self.backbone.head_rows)

    def configure_optimizers(self) -> Any:
        """Returns the optimizer of the trained parameters, and the schedule per optimizer step."""
        # Named, since some optimizers treat embeddings and hidden matrices differently.
        trained = [(name, parameter) for name, parameter in self.named_parameters() if parameter.requires_grad]
        if not trained:
            raise ValueError("Nothing to train: every parameter is frozen. Look at the backbone's freeze settings.")
        optimizer = self.optimizer(trained)
        if self.lr_scheduler is None:
            return optimizer
        scheduler = self.lr_scheduler(optimizer)
        if isinstance(scheduler, ReduceLROnPlateau):
            entry = {"scheduler": scheduler, "interval": "epoch", "monitor": "val/loss"}
            return {"optimizer": optimizer, "lr_scheduler": entry}
        if getattr(scheduler, "total_steps", 0) is None:
            scheduler.total_steps = int(self.trainer.estimated_stepping_batches)  # type: ignore[attr-defined]
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    # -- training -------------------------------------------------------------------------------------------------

    def on_train_start(self) -> None:
        """Notes the run's seed, from which every micro-batch draws anew."""
        self._seed = torch.initial_seed()
        begin_next_epoch(self.trainer)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Returns the loss of one micro-batch, normalised over its optimizer step."""
        assert batch.labels is not None
        window = self._window
        if window.counts is None:
            window.open(self._step_counts(batch))
        draw_anew(self._seed, self.global_step, window.micro_batches, self.global_rank)
        share = self._weight_share()
        output = self.objective(self.backbone, batch.inputs, batch.labels, window.counts, share)
        window.add(output)
        if batch.window_end:
            self._log_step(window, share)
            window.close()
        return output.loss

    def _weight_share(self) -> float:
        if self.weight_schedule is None:
            return 1.0
        return self.weight_schedule.factor(self.global_step, int(self.trainer.estimated_stepping_batches))

    def _step_counts(self, batch: Batch) -> StepCounts | None:
        """Counts what the optimizer step divides by, over the window and all processes."""
        if batch.window_targets is None:  # a data module that is not ours: each micro-batch counts for itself
            return None
        counts = self.objective.count(batch.window_targets)
        total = self.trainer.strategy.reduce(counts, reduce_op="sum")
        # The engine divides by both: loss / accumulate_grad_batches, and gradients averaged over processes.
        divided = self.trainer.world_size * self.trainer.accumulate_grad_batches
        supervised, numeric = (total / divided).tolist()
        return StepCounts(supervised, numeric)

    def _log_step(self, window: _Window, share: float) -> None:
        self._without_numbers += int(window.numeric == 0)
        ce = window.ce_sum / max(window.supervised, 1)
        numeric = window.numeric_sum / max(window.numeric, 1)
        values = {
            "train/loss": ce + share * self.objective.loss_weight * numeric,
            "train/ce": ce,
            "train/numeric": numeric,
            "train/numeric_share": window.numeric / max(window.supervised, 1),
            "train/steps_without_numbers": float(self._without_numbers),
        }
        if self.weight_schedule is not None:
            values["train/loss_weight"] = share * self.objective.loss_weight
        self.log_dict(values, on_step=True, on_epoch=False, batch_size=1)

    # -- evaluation -----------------------------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        """Forgets the sums of the last validation."""
        self._eval_sums = torch.zeros(4, dtype=torch.float64, device=self.device)
        self.metrics.reset()

    def validation_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """Adds a batch to the sums (with labels), or to the metrics (without), and returns the rows of its answers."""
        if batch.labels is None:
            return self._answer(batch)
        output = self.objective(self.backbone, batch.inputs, batch.labels)
        sums = torch.stack([output.metrics["ce_sum"], output.metrics["numeric_sum"]]).double()
        assert self._eval_sums is not None
        self._eval_sums += torch.cat([sums, sums.new_tensor([output.supervised, output.numeric])])
        return None

    def on_validation_epoch_end(self) -> None:
        """Logs the means over the whole split, over all processes."""
        assert self._eval_sums is not None
        total = self.trainer.strategy.reduce(self._eval_sums, reduce_op="sum")
        ce_sum, numeric_sum, supervised, numeric_count = total.tolist()
        ce, numeric = ce_sum / max(supervised, 1), numeric_sum / max(numeric_count, 1)
        losses = {"val/ce": ce, "val/numeric": numeric, "val/loss": ce + self.objective.loss_weight * numeric}
        self.log_dict(losses, rank_zero_only=False)
        self._log_metrics("val")

    def on_test_epoch_start(self) -> None:
        """Forgets the answers of the last test."""
        self.metrics.reset()

    def test_step(self, batch: Batch, batch_idx: int) -> list[dict[str, Any]]:  # type: ignore[override]
        """Generates answers; returns one plain row a sample, for the prediction file."""
        return self._answer(batch, record=self.save_distributions)

    def on_test_epoch_end(self) -> None:
        """Logs the metrics of all answers, over all processes."""
        self._log_metrics("test")

    def predict_step(self, batch: Batch, batch_idx: int) -> list[dict[str, Any]]:
        """Generates answers; returns one plain row a sample, for the prediction file."""
        return self._answer(batch, record=self.save_distributions)

    def _answer(self, batch: Batch, record: bool = False) -> list[dict[str, Any]]:
        options: dict[str, Any] = {"eos_token_id": batch.stop_ids} if batch.stop_ids else {}
        recorder = NumericRecorder(self.numbers) if record and self.numbers is not None else None
        if recorder is not None:
            options["logits_processor"] = [recorder]
        ids = self.backbone.generate(batch.inputs, max_new_tokens=self.max_new_tokens, **options)
        texts = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        pairs = [
            (text.strip(), example)
            for text, example, counted in zip(texts, batch.examples, batch.counted, strict=True)
            if counted
        ]
        self.metrics.update([text for text, _ in pairs], [example for _, example in pairs])
        rows = [self.metrics.row(text, example) for text, example in pairs]
        if recorder is not None:
            believed = [found for found, counted in zip(recorder.describe(ids), batch.counted, strict=True) if counted]
            rows = [{**row, "distributions": found} for row, found in zip(rows, believed, strict=True)]
        return rows

    def _log_metrics(self, stage: str) -> None:
        for name, value in self.metrics.compute().items():
            self.log(f"{stage}/{name}", value, prog_bar=name == self.watch, rank_zero_only=False)

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Leaves frozen weights out where `save_trained_only` says so, and makes resuming exact."""
        if self.save_trained_only:
            trained = self._trained_names()
            checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in trained}
        checkpoint["steps_without_numbers"] = self._without_numbers
        settle_counters(self.trainer, checkpoint)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads weights; names that are missing must all be frozen ones, where checkpoints hold the trained only.

        Raises:
            RuntimeError: Lists the names that are missing and the names that the model does not know; nothing has
                been loaded then.
        """
        if strict:
            self.check_names(set(state_dict), set(self.state_dict()))
        return super().load_state_dict(state_dict, strict=False, assign=assign)

    def check_names(self, found: set[str], own: set[str]) -> None:
        """Compares the names in a checkpoint with the model's; what is missing may only be frozen weights.

        Args:
            found: Names in the checkpoint.
            own: Names of the model's weights, as a checkpoint of the whole has them.

        Raises:
            RuntimeError: Lists the names that are missing and those that the model does not know.
        """
        missing = own - found
        if self.save_trained_only:
            missing &= self._trained_names()
        unknown = found - own
        if missing or unknown:
            raise RuntimeError(
                "The checkpoint does not fit the model.\n"
                f"  missing in the checkpoint ({len(missing)}): {sorted(missing)[:20]}\n"
                f"  unknown to the model ({len(unknown)}): {sorted(unknown)[:20]}\n"
                "Use the backbone, adapter and freeze settings that the checkpoint was written with."
            )

    def _trained_names(self) -> set[str]:
        """Names of trained parameters, without what FSDP1 puts between their parts."""
        trained = (name for name, parameter in self.named_parameters() if parameter.requires_grad)
        return {name.replace("_fsdp_wrapped_module.", "") for name in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes over the settings that the checkpoint was written with, if this object has none of its own."""
        self._without_numbers = checkpoint.get("steps_without_numbers", 0)
        if not self.hparams:
            self.save_hyperparameters(checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {}), logger=False)

    def _keep_settings(self, numeric_loss: NumericLoss | None) -> None:
        """Keeps plain settings for checkpoints: LightningCLI's own config, or the same made of the objects given."""
        if _given_hyperparameters.get() is not None:  # built by LightningCLI
            self.save_hyperparameters(logger=False)
            return
        try:
            settings = {
                "backbone": describe(self.backbone),
                "numeric_loss": describe(numeric_loss),
                "loss_weight": self.objective.loss_weight,
                "weight_schedule": None if self.weight_schedule is None else asdict(self.weight_schedule),
                "optimizer": describe(self.optimizer),
                "lr_scheduler": describe(self.lr_scheduler),
                "vocabulary": asdict(self.vocabulary),
                "max_new_tokens": self.max_new_tokens,
                "watch": self.watch,
                "save_trained_only": self.save_trained_only,
                "save_distributions": self.save_distributions,
                "_instantiator": "lightning.pytorch.cli.instantiate_module",
            }
        except ValueError as error:  # also while a checkpoint is being loaded, which brings its settings itself
            log.info("Checkpoints will hold no settings: %s", error)
        else:
            self.save_hyperparameters(settings, logger=False)


class _Window:
    """Running sums of the open accumulation window on this process."""

    counts: StepCounts | None
    ce_sum: Tensor | float
    numeric_sum: Tensor | float
    supervised: int
    numeric: int
    micro_batches: int

    def __init__(self) -> None:
        self.close()

    def open(self, counts: StepCounts | None) -> None:
        self.close()
        self.counts = counts

    def add(self, output: LossOutput) -> None:
        self.ce_sum = self.ce_sum + output.metrics["ce_sum"]
        self.numeric_sum = self.numeric_sum + output.metrics["numeric_sum"]
        self.supervised += output.supervised
        self.numeric += output.numeric
        self.micro_batches += 1

    def close(self) -> None:
        self.counts = None
        self.ce_sum = self.numeric_sum = 0.0
        self.supervised = self.numeric = self.micro_batches = 0
