"""Language models: any causal LM that transformers knows, GGUF files and tiny presets included.

One real example, as it stands in a YAML file::

    backbone:
      class_path: smmd_lightning.backbones.LanguageBackbone
      init_args: {path: smollm2-135m, adapter: {rank: 16}}
"""

from __future__ import annotations

from typing import Any

from smmd_lightning.backbones.base import Backbone


class LanguageBackbone(Backbone):
    """A causal language model; settings as in `Backbone`."""

    def auto_class(self) -> Any:
        """Returns `AutoModelForCausalLM`."""
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM
