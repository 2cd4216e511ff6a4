"""The configuration of `tower`, by itself: whoever reads only a tokenizer need not wait for model classes."""

from __future__ import annotations

from transformers import AutoConfig, CLIPVisionConfig


class StemmedCLIPVisionConfig(CLIPVisionConfig):
    """As CLIP's, under a type of its own."""

    model_type = "stemmed_clip_vision_model"


def register_config() -> None:
    """Lets `AutoConfig` know the type; as often as you like."""
    AutoConfig.register(StemmedCLIPVisionConfig.model_type, StemmedCLIPVisionConfig, exist_ok=True)
