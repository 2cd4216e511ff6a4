"""Settings that cannot work together, found before any weight loads.

Unusual: LoRA targets and frozen names are looked up in a copy of the model without weights (on torch's "meta" device),
so a spelling mistake costs a second and not the loading of billions of parameters.

One real example::

    >>> check_precision("16-mixed", "cpu")
    Traceback (most recent call last):
    ...
    ValueError: trainer.precision=16-mixed: a CPU does not train in float16. Take bf16-mixed or 32-true.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import torch
from lightning.pytorch.callbacks import StochasticWeightAveraging
from lightning.pytorch.utilities.rank_zero import rank_zero_debug, rank_zero_warn
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.trained_types import check_trained_type
from smmd_lightning.callbacks.digit_coverage import check_coverage, of_training
from smmd_lightning.callbacks.stopping_early import check_watcher
from smmd_lightning.compat.of_torch import cpu_has_bfloat16
from smmd_lightning.optimizers import MuonAdamW, scale_learning_rates
from smmd_lightning.schedules import WarmUpAndDecay, WarmupDecay, plateau_monitor
from smmd_lightning.strategies import FSDP1Strategy, ShardedStrategy
from smmd_lightning.vocabulary import NumericVocabulary

LOSSES = ("val/loss", "val/ce", "val/numeric")
"""What validation logs without generating answers."""


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
    check_strategy(trainer, backbone)
    if stage == "fit":
        check_trained_type(str(trainer.precision), isinstance(trainer.strategy, ShardedStrategy), backbone)
    from smmd_lightning.backbones.checking import check_names

    skeleton = check_names(backbone)
    if stage == "fit" and hasattr(module, "optimizer"):
        check_optimizer(trainer, module, skeleton)
    objective = getattr(module, "objective", None)
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


def check_strategy(trainer: Any, backbone: Any) -> None:
    """Refuses Lightning's own sharding, which knows nothing of how a backbone loads, and sharding of quantised weights.

    Args:
        trainer: The trainer.
        backbone: The module's backbone.

    Raises:
        ValueError: The strategy is one of Lightning's sharded ones, or a sharded one for quantised weights.
    """
    from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy

    strategy = trainer.strategy
    plain = isinstance(strategy, (FSDPStrategy, ModelParallelStrategy, DeepSpeedStrategy))
    if plain and not isinstance(strategy, ShardedStrategy):
        raise ValueError(_not_lightnings(type(strategy).__name__))
    if isinstance(strategy, ShardedStrategy) and backbone.quantization is not None:
        raise ValueError(
            f"{type(strategy).__name__} cannot shard quantised weights: several of them share a byte, and their scales "
            "are no parameters. Use ddp, where each process keeps a quantised copy, or leave quantization out."
        )


def _not_lightnings(strategy: str) -> str:
    return (
        f"trainer.strategy={strategy} would load the whole model in every process and save it in a form that cannot be "
        "resumed here. Take smmd_lightning.strategies.FSDP2Strategy (configs/trainer/fsdp2.yaml) or FSDP1Strategy; "
        "both run on CPUs too."
    )


def check_monitors(trainer: Any, module: Any) -> None:
    """Refuses callbacks that wait for a metric which no validation will give.

    Raises:
        ValueError: A monitored metric is a misspelt one, or needs generated answers where `generation_limit` is 0.
    """
    without = getattr(trainer.datamodule, "generation_limit", None) == 0
    generated = _metrics_of_answers(module)
    for callback in trainer.callbacks:
        monitor = getattr(callback, "monitor", None)
        if not isinstance(monitor, str):
            continue
        if monitor in generated and without:
            raise ValueError(
                f"{type(callback).__name__} waits for {monitor!r}, a metric of generated answers, but "
                "data.generation_limit=0 generates none. Raise data.generation_limit, or monitor one of "
                f"{', '.join(LOSSES)} (--checkpoint.monitor=val/loss)."
            )
        known = {*LOSSES, *generated}
        # What is like none of them may be logged by somebody's own callback or module.
        near = get_close_matches(monitor.removeprefix("val/"), [name[4:] for name in known], n=1, cutoff=0.8)
        if generated and monitor not in known and "/by_" not in monitor and near:
            raise ValueError(
                f"{type(callback).__name__} waits for {monitor!r}, which validation does not log. "
                f"Do you mean 'val/{near[0]}'? There are {', '.join(sorted(known))}."
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


def check_watched(module: Any) -> None:
    """Refuses a misspelt `watch`, which would show nothing.

    Raises:
        ValueError: No metric of generated answers has that name; lists those that are.
    """
    watch, names = getattr(module, "watch", None), {name.rsplit("/", 1)[-1] for name in _metrics_of_answers(module)}
    if watch is not None and names and watch.rsplit("/", 1)[-1] not in names:  # "by_kind/addition/exact_match" is one
        raise ValueError(
            f"model.watch={watch!r} is no metric of generated answers; there are {', '.join(sorted(names))}."
        )


def _metrics_of_answers(module: Any) -> set[str]:
    by_task = getattr(getattr(module, "metrics", None), "by_task", {})
    names = {task: set(metrics.summarise(torch.zeros(0, metrics.width))) for task, metrics in by_task.items()}
    return {f"val/{prefix}{name}" for task, found in names.items() for name in found for prefix in ("", f"{task}/")}


def check_monitored(trainer: Any) -> None:
    """Refuses callbacks that wait for a metric which validation has not logged.

    Args:
        trainer: The trainer, a validation just made (the sanity check will do).

    Raises:
        ValueError: A monitored metric is not there; lists those that are.
    """
    found = sorted(trainer.callback_metrics)
    for callback in trainer.callbacks:
        monitor = getattr(callback, "monitor", None)
        if isinstance(monitor, str) and monitor.startswith("val/") and monitor not in found:
            known = ", ".join(name for name in found if name.startswith("val/"))
            raise ValueError(f"{type(callback).__name__} waits for {monitor!r}, but validation logs only {known}.")


def check_trainer(settings: Any) -> None:
    """Refuses trainer settings that Lightning would take for something else, or stumble over without their name.

    Args:
        settings: `trainer` of the config, before anything is built from it.

    Raises:
        ValueError: A setting cannot be; names it and says what to take.
    """
    check_precision(settings.get("precision"), settings.get("accelerator"))
    strategy = settings.get("strategy")
    if isinstance(strategy, str) and strategy.startswith(("fsdp", "deepspeed")):
        raise ValueError(_not_lightnings(strategy))
    interval = settings.get("val_check_interval")
    if isinstance(interval, (int, float)) and not 0 < interval < math.inf:
        raise ValueError(
            f"trainer.val_check_interval must be above 0, got {interval}: a share of an epoch (0.5) or a number of "
            "micro-batches. To leave validation out, set trainer.limit_val_batches=0."
        )
    every = settings.get("check_val_every_n_epoch")
    if every is not None and every < 1:
        raise ValueError(
            f"trainer.check_val_every_n_epoch must be at least 1, got {every}, or null to count micro-batches over "
            "epochs. To leave validation out, set trainer.limit_val_batches=0."
        )
    for name in ("limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches"):
        limit = settings.get(name)
        if isinstance(limit, (int, float)) and not 0 <= limit < math.inf:
            raise ValueError(
                f"trainer.{name} must be a share of the batches (0.25) or a number of them (8), got {limit}; null: all."
            )
    clip = settings.get("gradient_clip_val")
    if clip is not None and not 0 <= clip < math.inf:
        raise ValueError(f"trainer.gradient_clip_val must be at least 0, got {clip}. 0 or null does not clip.")


def check_seed(seed: Any) -> None:
    """Refuses a seed that numpy cannot take, before Lightning hands it over.

    Raises:
        ValueError: `seed_everything` is out of range.
    """
    if not isinstance(seed, bool) and seed is not None and not 0 <= seed < 2**32:
        raise ValueError(f"seed_everything must lie between 0 and {2**32 - 1}, got {seed}.")


def check_precision(precision: Any, accelerator: Any) -> None:
    """Refuses a precision that the device lacks, where Lightning would take another one instead.

    Args:
        precision: `trainer.precision`.
        accelerator: `trainer.accelerator`; "auto" is a GPU where there is one.

    Raises:
        ValueError: The device cannot compute in it.
    """
    name = str(precision)
    gpu = torch.cuda.is_available() and accelerator in ("auto", "gpu", "cuda", None)
    if name in ("16", "16-mixed", "16-true") and (accelerator == "cpu" or (accelerator in ("auto", None) and not gpu)):
        raise ValueError(f"trainer.precision={name}: a CPU does not train in float16. Take bf16-mixed or 32-true.")
    if name.startswith("bf16") and gpu and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ValueError(
            f"trainer.precision={name}: {torch.cuda.get_device_name()} does not compute in bfloat16. "
            "Take 16-mixed or 32-true."
        )
    if name.startswith("bf16") and not gpu and not cpu_has_bfloat16():
        rank_zero_warn(
            f"trainer.precision={name}: this CPU has no bfloat16 instructions, torch imitates them and takes several "
            "times as long as in float32. Take 32-true, and dtype: float32 for the backbone."
        )
