"""Settings that cannot work together, found before any weight loads.

Unusual: LoRA targets and frozen names are looked up in a copy of the model without weights (on torch's "meta" device),
so a spelling mistake costs a second and not the loading of billions of parameters.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from lightning.pytorch.callbacks import StochasticWeightAveraging
from lightning.pytorch.utilities.rank_zero import rank_zero_debug
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.trained_types import check_trained_type
from smmd_lightning.callbacks.digit_coverage import check_coverage, of_training
from smmd_lightning.callbacks.monitor_checks import check_monitors, check_watched
from smmd_lightning.callbacks.stopping_early import check_watcher
from smmd_lightning.callbacks.trainer_checks import not_resumable
from smmd_lightning.optimizers import MuonAdamW, scale_learning_rates
from smmd_lightning.schedules import WarmUpAndDecay, WarmupDecay, plateau_monitor
from smmd_lightning.strategies import FSDP1Strategy, ShardedStrategy
from smmd_lightning.vocabulary import NumericVocabulary


def check_run(trainer: Any, module: Any, stage: str) -> None:
    """Checks a trainer, a module and its data before `configure_model`.

    Args:
        trainer: The trainer, module and data module attached.
        module: Any LightningModule; the model's checks are made for those with a backbone.
        stage: "fit", "validate", "test" or "predict".

    Raises:
        ValueError: Settings cannot work together; names them and says what to change.
    """
    if trainer.accumulate_grad_batches < 1:
        raise ValueError(f"trainer.accumulate_grad_batches must be at least 1, got {trainer.accumulate_grad_batches}.")
    if stage == "fit":
        if trainer.limit_train_batches == 0:
            raise ValueError("trainer.limit_train_batches=0 leaves nothing to train on; null takes all batches.")
        check_monitors(trainer, module)
        check_averaging(trainer)
        check_watched(module)
    backbone = getattr(module, "backbone", None)
    if backbone is None or backbone.loaded:
        return
    objective = getattr(module, "objective", None)
    check_strategy(trainer, backbone, getattr(objective, "numeric_loss", None))
    if stage == "fit":
        check_trained_type(str(trainer.precision), isinstance(trainer.strategy, ShardedStrategy), backbone)
    from smmd_lightning.backbones.checking import check_names

    skeleton = check_names(backbone)
    if stage == "fit" and hasattr(module, "optimizer"):
        check_optimizer(trainer, module, skeleton)
    if objective is not None and objective.numeric_loss is not None:
        processor = load_processor(
            backbone.path, revision=backbone.revision, trust_remote_code=backbone.trust_remote_code
        )
        # Raises what there is to say about a tokenizer without numbers.
        tokenizer = getattr(processor, "tokenizer", processor)
        vocabulary = NumericVocabulary.from_tokenizer(tokenizer, **asdict(module.vocabulary))
        if stage == "fit":
            check_coverage(of_training(trainer, tokenizer, vocabulary))


def check_optimizer(trainer: Any, module: Any, skeleton: nn.Module) -> None:
    """Makes the optimizer and its schedule for a model without weights, to see what they say to their settings.

    Args:
        trainer: The trainer.
        module: The LightningModule.
        skeleton: The model's copy, frozen as the model will be.

    Raises:
        ValueError: The optimizer or the schedule refuses a setting, the optimizer does not fit the strategy, or a
            schedule decays over a training without end.
    """
    trained = [(name, parameter) for name, parameter in skeleton.named_parameters() if parameter.requires_grad]
    if module.backbone.adapter is not None:  # its matrices are not there yet
        trained = [("adapter.weight", nn.Parameter(torch.empty(2, 2, device="meta")))]
    setting, optimizer, schedule = "optimizer", None, None
    try:
        optimizer = module.optimizer(trained) if trained else None
        if optimizer is not None and module.backbone.adapter is None:
            setting = "lr_scale"
            scale_learning_rates(optimizer, getattr(module, "lr_scale", None) or {})
        setting = "lr_scheduler"
        if optimizer is not None and module.lr_scheduler is not None:
            schedule = module.lr_scheduler(optimizer)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"model.{setting} cannot be made with these settings: {error}") from error
    except Exception as error:  # of parameters without memory, perhaps: then the real ones decide
        rank_zero_debug(f"model.{setting} was not checked before loading: {error}")
    if isinstance(trainer.strategy, FSDP1Strategy) and isinstance(optimizer, MuonAdamW):
        raise ValueError(
            "model.optimizer: Muon needs whole matrices, and FSDP1 hands out flat pieces: all would go to AdamW. "
            "Take FSDP2Strategy (configs/trainer/fsdp2.yaml), or torch.optim.AdamW."
        )
    if isinstance(schedule, ReduceLROnPlateau):
        monitor = plateau_monitor(schedule)
        check_watcher(trainer, f"model.lr_scheduler: ReduceLROnPlateau(monitor={monitor!r})", monitor, schedule.mode)
    endless = trainer.max_steps == -1 and trainer.max_epochs in (-1, None)
    for name, made in (("lr_scheduler", schedule), ("weight_schedule", getattr(module, "weight_schedule", None))):
        decays = isinstance(made, WarmupDecay | WarmUpAndDecay) and made.decay != "constant"
        if endless and decays and getattr(made, "total_steps", None) is None:
            raise ValueError(
                f"model.{name} decays over the whole training, but neither trainer.max_steps nor trainer.max_epochs "
                "says how long that is. Set one of them, or decay: constant."
            )


def check_strategy(trainer: Any, backbone: Any, loss: Any = None) -> None:
    """Refuses Lightning's own sharding, which knows nothing of how a backbone loads, and sharding of quantised weights.

    Args:
        trainer: The trainer.
        backbone: The module's backbone.
        loss: Its numeric loss, if it has one.

    Raises:
        ValueError: The strategy is one of Lightning's sharded ones, or a sharded one for quantised weights or for a
            loss that reads the head.
    """
    from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy

    strategy = trainer.strategy
    plain = isinstance(strategy, (FSDPStrategy, ModelParallelStrategy, DeepSpeedStrategy))
    if plain and not isinstance(strategy, ShardedStrategy):
        raise ValueError(not_resumable(type(strategy).__name__))
    if isinstance(strategy, ShardedStrategy) and loss is not None and loss.reads_head:
        raise ValueError(
            f"{type(loss).__name__} needs the whole head in one process, and {type(strategy).__name__} spreads it over "
            "several. Use ddp, or another loss."
        )
    if isinstance(strategy, ShardedStrategy) and backbone.quantization is not None:
        raise ValueError(
            f"{type(strategy).__name__} cannot shard quantised weights: several of them share a byte, and their scales "
            "are no parameters. Use ddp, where each process keeps a quantised copy, or leave quantization out."
        )


def check_averaging(trainer: Any) -> None:
    """Refuses weight averaging that a run which was stopped cannot go on with.

    Raises:
        ValueError: A callback swaps the schedule while training, and its checkpoints do not hold what it swapped.
    """
    if any(isinstance(callback, StochasticWeightAveraging) for callback in trainer.callbacks):
        raise ValueError(
            "StochasticWeightAveraging exchanges the learning-rate schedule on its way: a run that was stopped would "
            "end otherwise than one left alone. Take lightning.pytorch.callbacks.EMAWeightAveraging."
        )
