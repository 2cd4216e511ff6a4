"""Which weights are trained: LoRA, freezing, and loading files that hold only the trained ones.

Unusual here: LoRA goes to the language model of a vision-language model only, whatever suffixes are given, unless
`vision` is set (attention layers of vision towers have the same names, "q_proj"); and nothing is ever half-loaded:
every name must fit, or the error lists those that do not.

One real example::

    >>> LoRA(rank=8, target_modules=["q_proj", "v_proj"]).vision
    False
"""

from __future__ import annotations

import logging
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from smmd_lightning.backbones.naming import matching, refuse_mismatch, shortened

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)


@dataclass
class LoRA:
    """Low-rank adapters (Hu et al. 2021, arXiv 2106.09685) through peft; all other weights are frozen.

    Adapters of half-precision weights are kept in float32, as small updates would be lost otherwise.

    Attributes:
        rank: Rank r of the update B A.
        alpha: The update is scaled by alpha / r.
        dropout: Dropout on the adapter's input while training.
        target_modules: "all-linear" for every linear layer but the head, or the last parts of module names.
        vision: Adapt the vision tower and the projector too.
        also_train: Patterns (`fnmatch`) of the model's own parameters that are trained beside the adapter, e.g.
            "model.multi_modal_projector.*".
        weights: Folder of a saved adapter to start from (`adapter_model.safetensors`).
        dora: Train the length of each row apart from its direction (DoRA, Liu et al. 2024, arXiv 2402.09353).
        rslora: Scale by alpha / sqrt(r), so that large ranks learn as fast (rsLoRA, Kalajdzievski 2023, arXiv
            2312.03732).
        init: "zero" starts at the base model: B is 0. "pissa" starts A and B as the largest singular directions of
            the weights and freezes the rest (PiSSA, Meng et al. 2024, arXiv 2404.02948).
        rank_pattern: Ranks of modules whose full names end in a key (a regular expression), instead of `rank`.
        alpha_pattern: Alphas of modules, likewise.

    LoRA+ (another learning rate for B) is `model.lr_scale: {"*.lora_B.*": 16}`.

    Raises:
        ValueError: A number is out of its range.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    target_modules: str | list[str] = "all-linear"
    vision: bool = False
    also_train: list[str] = field(default_factory=list)
    weights: str | None = None
    dora: bool = False
    rslora: bool = False
    init: Literal["zero", "pissa"] = "zero"
    rank_pattern: dict[str, int] = field(default_factory=dict)
    alpha_pattern: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"LoRA rank must be at least 1, got {self.rank}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"LoRA dropout must be in [0, 1), got {self.dropout}")
        if self.init not in ("zero", "pissa"):
            raise ValueError(f"LoRA init must be zero or pissa, got {self.init!r}")
        if bad := {name: rank for name, rank in self.rank_pattern.items() if rank < 1}:
            raise ValueError(f"LoRA rank_pattern: ranks must be at least 1, got {bad}")

    def targets(self, causal: PreTrainedModel, language: nn.Module) -> list[str]:
        """Returns the full names of the modules to adapt.

        Args:
            causal: The whole model.
            language: Its language model, where adapters stay unless `vision` is set.

        Raises:
            ValueError: An entry of `target_modules` fits no linear layer.
        """
        from transformers.pytorch_utils import Conv1D

        head = causal.get_output_embeddings()
        inside = set(causal.modules() if self.vision else language.modules())
        linear = {
            name: module
            for name, module in causal.named_modules()
            if isinstance(module, (nn.Linear, Conv1D)) and (module in inside or module is head)
        }
        if self.target_modules == "all-linear":
            return [name for name, module in linear.items() if module is not head]
        wanted = [self.target_modules] if isinstance(self.target_modules, str) else list(self.target_modules)
        found = {suffix: [name for name in linear if f".{name}".endswith(f".{suffix}")] for suffix in wanted}
        if unmatched := [suffix for suffix, names in found.items() if not names]:
            where = "" if self.vision else "the language model of "
            raise ValueError(
                f"LoRA target_modules {unmatched} fit no linear layer of {where}{type(causal).__name__}; it has "
                f"{sorted({name.rsplit('.', 1)[-1] for name in linear})}"
            )
        return [name for name in linear if any(name in names for names in found.values())]

    def check_patterns(self, names: list[str]) -> None:
        """Refuses patterns of ranks and alphas that fit no adapted module; peft would leave them out silently."""
        for setting in ("rank_pattern", "alpha_pattern"):
            for pattern in getattr(self, setting):
                if not any(re.match(rf"(.*\.)?({pattern})$", name) for name in names):
                    raise ValueError(f"LoRA {setting}: {pattern!r} fits no adapted module; they are {shortened(names)}")

    def attach(self, causal: PreTrainedModel, language: nn.Module) -> PeftModel:
        """Puts the adapter into the model, freezes the rest and logs what was chosen.

        Args:
            causal: The whole model; changed in place.
            language: Its language model.

        Raises:
            ValueError: `target_modules` or `also_train` fit nothing, or the names in `weights` do not fit.
        """
        names = self.targets(causal, language)
        self.check_patterns(names)
        counts = Counter(name.rsplit(".", 1)[-1] for name in names)
        log.info(
            "LoRA of rank %d on %d modules of %s: %s",
            self.rank,
            len(names),
            type(causal).__name__,
            ", ".join(f"{name} x {count}" for name, count in sorted(counts.items())),
        )
        wanted = matching(causal, self.also_train)
        model = self._wrapped(causal, names)
        for parameter in wanted.values():
            parameter.requires_grad_(True)
        if self.weights is not None:
            load_adapter(model, self.weights)
        return model

    def attach_without_weights(self, causal: PreTrainedModel, language: nn.Module) -> PeftModel:
        """As `attach`, for a model on the meta device: gives names and shapes, no values.

        Args:
            causal: The whole model, on the meta device; changed in place.
            language: Its language model.

        Raises:
            ValueError: As in `attach`.
        """
        plain = replace(self, init="zero", weights=None)
        wanted = matching(causal, self.also_train)
        with torch.device("meta"):
            model = plain._wrapped(causal, self.targets(causal, language))
        for parameter in wanted.values():
            parameter.requires_grad_(True)
        return model

    def _wrapped(self, causal: PreTrainedModel, names: list[str]) -> Any:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,  # type: ignore[arg-type]  # peft takes any number
            lora_dropout=self.dropout,
            target_modules=names,
            task_type="CAUSAL_LM",
            use_dora=self.dora,
            use_rslora=self.rslora,
            init_lora_weights=True if self.init == "zero" else self.init,
            rank_pattern=dict(self.rank_pattern),
            alpha_pattern=dict(self.alpha_pattern),
        )
        with warnings.catch_warnings():  # peft reads a property of transformers that is on its way out
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
            return get_peft_model(causal, config)


def load_adapter(model: PeftModel, folder: str) -> None:
    """Loads a saved adapter into a model that has one of the same shape.

    Args:
        model: The model with its fresh adapter.
        folder: What peft's `save_pretrained` wrote.

    Raises:
        ValueError: The folder holds no adapter, or its names or shapes do not fit the model's adapter.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import load_file

    file = Path(folder) / "adapter_model.safetensors"
    if not file.is_file():
        raise ValueError(f"LoRA weights={folder!r}: there is no adapter_model.safetensors in that folder")
    state, own = load_file(file), get_peft_model_state_dict(model)
    refuse_mismatch(
        f"the adapter {file} does not fit this model's adapter",
        missing=sorted(set(own) - set(state)),
        unexpected=sorted(set(state) - set(own)),
        wrong_shape=[name for name in state if name in own and own[name].shape != state[name].shape],
    )
    set_peft_model_state_dict(model, state)
