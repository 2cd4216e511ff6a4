"""Trainer settings that cannot be, found in the config before anything is built from it.

One real example::

    >>> check_precision("16-mixed", "cpu")
    Traceback (most recent call last):
    ...
    ValueError: trainer.precision=16-mixed: a CPU does not train in float16. Take bf16-mixed or 32-true.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from lightning.pytorch.utilities.rank_zero import rank_zero_warn

from smmd_lightning.compat.of_torch import cpu_has_bfloat16


def not_resumable(strategy: str) -> str:
    """Returns why a sharding strategy of Lightning is refused, and what to take.

    Args:
        strategy: Its name in the config, or its class's.
    """
    return (
        f"trainer.strategy={strategy} would load the whole model in every process and save it in a form that cannot be "
        "resumed here. Take smmd_lightning.strategies.FSDP2Strategy (configs/trainer/fsdp2.yaml) or FSDP1Strategy; "
        "both run on CPUs too."
    )


def check_trainer_settings(settings: Any) -> None:
    """Refuses trainer settings that Lightning would take for something else, or stumble over without their name.

    Args:
        settings: `trainer` of the config, before anything is built from it.

    Raises:
        ValueError: A setting cannot be; names it and says what to take.
    """
    check_precision(settings.get("precision"), settings.get("accelerator"))
    strategy = settings.get("strategy")
    if isinstance(strategy, str) and strategy.startswith(("fsdp", "deepspeed")):
        raise ValueError(not_resumable(strategy))
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
