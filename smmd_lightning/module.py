"""The LightningModule: a backbone, the objective, and metrics over generated answers.

Training logs means over one optimizer step. Validation has two loaders, one with answers (teacher forcing: `val/ce`,
`val/numeric`, `val/loss`) and one with prompts (generation: `val/exact_match`, …); test and predict generate.

Shape legend: B rows, T positions, S supervised positions of an accumulation window.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from lightning.pytorch.cli import LRSchedulerCallable, OptimizerCallable
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn
from torch import Tensor

from smmd_lightning.answering import Answering, Decode, answer
from smmd_lightning.backbones.base import Backbone
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.trained_types import keep_in_float32, refuse_half_precision
from smmd_lightning.balance import LossWeight, WeightBalance
from smmd_lightning.checkpoints.restoring import RestorableModule
from smmd_lightning.checkpoints.resume import (
    begin_next_epoch,
    draw_anew,
    follow_settings,
    group_settings,
)
from smmd_lightning.checkpoints.settings import keep_settings
from smmd_lightning.compat.of_lightning import trainer_of
from smmd_lightning.loss_sums import LossSums, StepCounts, Window
from smmd_lightning.losses import NumericLoss
from smmd_lightning.losses.scope import Scope
from smmd_lightning.metrics import MetricsByTask
from smmd_lightning.objective import NumericObjective
from smmd_lightning.optimizers import scale_learning_rates
from smmd_lightning.schedules import WarmUpAndDecay, planned_steps, scheduled, step_plateaus
from smmd_lightning.strategies import ShardedStrategy
from smmd_lightning.types import Batch, VocabularyOptions
from smmd_lightning.vocabulary import NumericVocabulary

MANY_CUT_OFF = 0.5
"""Share of answers cut off by the limit of tokens above which it is said."""


class SMMDModule(RestorableModule):
    """Fine-tunes a language or vision-language model to answer with numbers.

    Args:
        backbone: The model to train; its weights load in `configure_model`.
        numeric_loss: The numeric loss. None: cross-entropy alone.
        loss_weight: Lambda, the weight of the numeric loss beside the cross-entropy; "auto": see `weight_balance`.
        optimizer: Makes the optimizer of the trained parameters.
        lr_scheduler: Makes the learning-rate schedule, stepped once per optimizer step. None: constant rate.
        vocabulary: Which tokens count as numbers.
        max_new_tokens: Most tokens of a generated answer.
        watch: The metric of generated answers shown in the progress bar, without `val/`.
        save_trained_only: Whether checkpoints leave out the weights that are frozen.
        save_distributions: Whether predictions also tell expected value and spread of each number.
        weight_schedule: Shares of `loss_weight` over the optimizer steps of the training. None: all of it, always.
        weight_balance: How `loss_weight: auto` finds lambda in the first steps, in which it is 0.
        scope: Whether the numeric loss acts on the last number of each answer ("answer") or on all numbers ("all").
        lr_scale: Factors of the learning rate by pattern (`fnmatch`) of parameter names, as in
            `{"model.multi_modal_projector.*": 5.0, "*.lora_B.*": 16.0}` (the second is LoRA+, arXiv 2402.12354). The
            first pattern that fits counts. None: one rate for all.
        decode: Which answer is judged and written: "greedy", or "median" or "mean" of the likely answers (then in
            validation too). The greedy one is told beside it.
        likely_answers: How many of the likeliest whole answers test and predict find for each question, with their
            probabilities; metrics then tell CRPS, likelihood and coverage. Costs about as many generations. 0: none.

    Raises:
        ValueError: A setting is out of its range.
    """

    def __init__(
        self,
        backbone: Backbone,
        numeric_loss: NumericLoss | None = None,
        loss_weight: LossWeight = 1.0,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        lr_scheduler: LRSchedulerCallable | None = None,
        vocabulary: VocabularyOptions = VocabularyOptions(),  # noqa: B008 (frozen)
        max_new_tokens: int = 32,
        watch: str = "exact_match",
        save_trained_only: bool = False,
        save_distributions: bool = False,
        weight_schedule: WarmUpAndDecay | None = None,
        lr_scale: dict[str, float] | None = None,
        decode: Decode = "greedy",
        likely_answers: int = 0,
        weight_balance: WeightBalance = WeightBalance(),  # noqa: B008 (frozen)
        scope: Scope = "all",
    ) -> None:
        super().__init__(save_trained_only)
        if backbone.quantization is not None and not save_trained_only:
            raise ValueError("Quantised weights are not kept in checkpoints: set model.save_trained_only to true.")
        self.backbone = backbone
        self.objective = NumericObjective(numeric_loss, loss_weight, weight_balance, scope)
        self.weight_balance, self.measured = weight_balance, self.objective.measured
        self.weight_schedule = weight_schedule
        self.lr_scale = lr_scale
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.vocabulary = vocabulary
        Answering(max_new_tokens, decode, likely_answers)  # checks them
        self.max_new_tokens = max_new_tokens
        self.decode: Decode = decode
        self.likely_answers = likely_answers
        self.watch = watch
        self.save_distributions = save_distributions
        self.metrics = MetricsByTask(with_laws=likely_answers > 0)
        self._window = Window()
        self._eval_sums = LossSums()
        self._told_of_cuts = False
        keep_settings(self, numeric_loss)

    # -- set-up ---------------------------------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Loads the weights and binds the objective to the model's numeric vocabulary; a second call does nothing."""
        if hasattr(self, "tokenizer"):
            return
        processor = load_processor(
            self.backbone.path, revision=self.backbone.revision, trust_remote_code=self.backbone.trust_remote_code
        )
        tokenizer = getattr(processor, "tokenizer", processor)
        numbers: NumericVocabulary | None = None
        if self.objective.numeric_loss is not None or self.save_distributions:
            numbers = NumericVocabulary.from_tokenizer(tokenizer, **asdict(self.vocabulary))
        if self.objective.numeric_loss is not None and numbers is not None:
            self.objective.numeric_loss.bind(numbers)  # settings that do not fit the vocabulary fail here
        trainer = trainer_of(self)
        strategy = None if trainer is None else trainer.strategy
        if isinstance(strategy, ShardedStrategy) and not self.backbone.loaded:
            strategy.load_backbone(self.backbone)
        else:
            self.backbone.load()
            if trainer is not None and str(trainer.precision).endswith("-mixed"):
                keep_in_float32(self.backbone)
        self.objective.bind(numbers, self.backbone.head_rows, self.backbone.head_weight)
        self.numbers, self.tokenizer = numbers, tokenizer

    def configure_optimizers(self) -> Any:
        """Returns the optimizer of the trained parameters, and the schedule per optimizer step."""
        # Named, since some optimizers treat embeddings and hidden matrices differently.
        trained = [(name, parameter) for name, parameter in self.named_parameters() if parameter.requires_grad]
        if not trained:
            raise ValueError("Nothing to train: every parameter is frozen. Look at the backbone's freeze settings.")
        refuse_half_precision(trained, isinstance(self.trainer.strategy, ShardedStrategy))
        optimizer = self.optimizer(trained)
        scale_learning_rates(optimizer, self.lr_scale or {})
        self._fresh_groups = group_settings(optimizer)
        return optimizer if self.lr_scheduler is None else scheduled(optimizer, self.lr_scheduler, self.trainer)

    # -- training -------------------------------------------------------------------------------------------------

    def on_train_start(self) -> None:
        """Notes the run's seed, which seeds every micro-batch's generators; settings beat those of a checkpoint."""
        self._seed = torch.initial_seed()
        follow_settings(self.trainer, self._fresh_groups, self._optimizer_before, self.hparams.get("optimizer"))
        self._window.open(None)  # an earlier fit may have been left inside one
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
            if self.objective.measuring:
                self._measure_weight(window.sums)
            window.open(None)
        return output.loss

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Takes the step and lets go of the gradients, which Lightning would keep through the next forward pass."""
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        optimizer.zero_grad(set_to_none=True)

    def _measure_weight(self, own: LossSums) -> None:
        """Adds an optimizer step to what `loss_weight: auto` goes by; all processes do, and get the same."""
        sums = own.reduce(self.trainer.strategy, self.device)
        self.measured.add(float(sums.ce_square), float(sums.numeric_square), sums.supervised, sums.numeric)
        if not self.measured.measuring:
            rank_zero_info(f"loss_weight: auto is {self.measured.value:.4g} from step {self.global_step + 1} on")

    def _weight_share(self) -> float:
        if self.weight_schedule is None:
            return 1.0
        return self.weight_schedule.factor(self.global_step, planned_steps(self.trainer))

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

    def _log_step(self, window: Window, share: float) -> None:
        self._without_numbers += int(window.sums.numeric == 0)
        weight = share * self.objective.weight
        values = {f"train/{name}": value for name, value in window.sums.means(weight).items()}
        values["train/numeric_share"] = window.sums.numeric / max(window.sums.supervised, 1)
        values["train/steps_without_numbers"] = float(self._without_numbers)
        if self.weight_schedule is not None or self.measured is not None:
            values["train/loss_weight"] = weight
        self.log_dict(values, on_step=True, on_epoch=False, batch_size=1)

    # -- evaluation -----------------------------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        """Forgets the sums of the last validation."""
        self._eval_sums = LossSums()
        self.metrics.reset()

    def validation_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """Adds a batch to the sums (with labels), or to the metrics (without), and returns the rows of its answers."""
        if batch.labels is None or not batch.examples:
            return self._answer(batch)
        self._eval_sums.add(self.objective(self.backbone, batch.inputs, batch.labels))
        return None

    def on_validation_epoch_end(self) -> None:
        """Logs the means over the whole split, over all processes."""
        sums = self._eval_sums.reduce(self.trainer.strategy, self.device)
        losses = {f"val/{name}": value for name, value in sums.means(self.objective.weight).items()}
        self.log_dict(losses, rank_zero_only=False)
        self._log_metrics("val")
        if self.trainer.state.fn == TrainerFn.FITTING and not self.trainer.sanity_checking:
            step_plateaus(self.trainer)

    def on_test_epoch_start(self) -> None:
        """Forgets the answers of the last test."""
        self.metrics.reset()

    def test_step(self, batch: Batch, batch_idx: int) -> list[dict[str, Any]]:  # type: ignore[override]
        """Generates answers; returns one plain row per sample, for the prediction file."""
        return self._answer(batch, record=True)

    def on_test_epoch_end(self) -> None:
        """Logs the metrics of all answers, over all processes."""
        self._log_metrics("test")

    def predict_step(self, batch: Batch, batch_idx: int) -> list[dict[str, Any]]:
        """Generates answers; returns one plain row per sample, for the prediction file."""
        return self._answer(batch, record=True)

    def _answer(self, batch: Batch, record: bool = False) -> list[dict[str, Any]]:
        recorded = self.numbers if record and self.save_distributions else None
        how = Answering(self.max_new_tokens, self.decode, self.likely_answers)
        return answer(self.backbone, self.tokenizer, batch, self.metrics, how, recorded, record)

    def _log_metrics(self, stage: str) -> None:
        values = self.metrics.compute()
        for name, value in values.items():
            self.log(f"{stage}/{name}", value, prog_bar=name == self.watch, rank_zero_only=False)
        if float(values.get("cut_off", 0)) > MANY_CUT_OFF and not self._told_of_cuts:
            self._told_of_cuts = True
            rank_zero_warn(
                f"{float(values['cut_off']):.0%} of the answers were cut off by model.max_new_tokens="
                f"{self.max_new_tokens} before they ended, and may count as wrong for that alone. Raise it."
            )
