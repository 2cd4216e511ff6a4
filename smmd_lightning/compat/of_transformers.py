"""Private names of transformers (5.0 to 5.24): Auto classes, attention, blocks.

Each function says what the public interface lacks.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel


def can_build(auto_class: Any, config: PretrainedConfig) -> bool:
    """Whether an Auto class knows the model of a configuration.

    There is no public question; `from_config` would answer only by an error, after it has begun to build.
    """
    return type(config) in auto_class._model_mapping


def config_classes(auto_class: Any) -> list[Any]:
    """Returns the configuration classes of all models that an Auto class can build, in order of their names."""
    return sorted(auto_class._model_mapping.keys(), key=lambda config_class: str(config_class.model_type))


def attention_of(config: PretrainedConfig) -> str | None:
    """Returns the attention implementation a model runs with; it can be set publicly, but not read."""
    return config._attn_implementation


def block_names(model: PreTrainedModel) -> set[str]:
    """Returns class names of the repeated blocks, which the model declares for `device_map` and for sharding."""
    return set(model._no_split_modules or ())


def leave_inputs_without_gradients(model: PreTrainedModel) -> None:
    """Undoes what `gradient_checkpointing_enable` does for reentrant checkpoints.

    The hook makes the embeddings' output require gradients, which draws a frozen vision tower into the backward pass.
    The public method that removes it fails in some versions where no hook was set.
    """
    if hasattr(model, "_require_grads_hook"):
        model.disable_input_require_grads()


def repeats_pictures_by_row(model: PreTrainedModel) -> bool:
    """Whether `generate` repeats a prompt's pictures as a group, for several continuations of it.

    Newer models let it (they take pictures that are encoded already), older ones override how inputs are repeated.
    Otherwise each entry of each tensor is repeated, which mixes up pictures where a prompt has several. None says so.
    """
    from transformers import GenerationMixin

    own: Any = type(model)
    overridden = own._expand_inputs_for_generation is not GenerationMixin._expand_inputs_for_generation
    return overridden or "mm_encoder_outputs" in inspect.signature(own.forward).parameters


class DrawsItsOwn:
    """Goes before a model's class among the bases; `draw` sets random weights after the model's own rule has.

    `_init_weights` is the method that every architecture in transformers overrides; none is public.
    """

    def draw(self, module: nn.Module) -> None:
        """Sets the weights of one module; does nothing unless overridden."""

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[misc]
        self.draw(module)
