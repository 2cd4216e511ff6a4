"""Our losses in other people's trainers: transformers' `Trainer`, TRL's `SFTTrainer`. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "SMMDTrainer": "transformers_trainer",
    "SMMDSFTTrainer": "sft",
    "score_wrapped": "wrapped_model",
    "AnswerReward": "rewards",
    "CRPSReward": "rewards",
    "FormatReward": "rewards",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
