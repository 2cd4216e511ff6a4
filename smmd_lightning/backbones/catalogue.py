"""Which architectures of the installed transformers can be trained here, and why the others cannot.

Unusual here: no list is kept by hand. Each architecture is built from its own default configuration with few blocks and
without weights, and asked for what training needs: a decoder, a head that can be taken off, and for pictures a tower
that can be told from the language model.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from smmd_lightning.backbones.vision_language import parts
from smmd_lightning.compat.of_transformers import config_classes

BLOCKS = ("num_hidden_layers", "num_layers", "depth", "n_layer", "encoder_layers", "decoder_layers")
"""What configurations call the number of their blocks."""


@dataclass(frozen=True)
class Entry:
    """One architecture.

    Attributes:
        model_type: Its name in transformers.
        kind: "images" or "text".
        reason: Why it cannot be trained here; None: it can.
    """

    model_type: str
    kind: Literal["images", "text"]
    reason: str | None


def catalogue(kind: Literal["images", "text"], only: set[str] | None = None) -> Iterator[Entry]:
    """Builds the architectures of a kind one by one; neither weights nor files are read.

    Args:
        kind: "images" for image-text-to-text models, "text" for causal language models.
        only: Names of the architectures wanted; None: all.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    auto: Any = AutoModelForImageTextToText if kind == "images" else AutoModelForCausalLM
    for config_class in config_classes(auto):
        name = str(config_class.model_type)
        if only is None or name in only:
            yield Entry(name, kind, why_not(auto, config_class, kind))


def why_not(auto_class: Any, config_class: Any, kind: str) -> str | None:
    """Returns why an architecture cannot be trained here; None where it can.

    Args:
        auto_class: The Auto class that builds it.
        config_class: Its configuration's class.
        kind: "images" or "text".
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # defaults are no checkpoint, and many complain about themselves
    try:
        with warnings.catch_warnings(), torch.device("meta"), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            return _lacks(_built(auto_class, config_class), kind)
    except Exception as error:  # whatever a default configuration fails with is the answer
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        return f"its default configuration cannot be built ({type(error).__name__}: {said[:100]})"
    finally:
        logging.disable(before)


def _built(auto_class: Any, config_class: Any) -> Any:
    """The model with two blocks a part where it can be cut, else with all of them."""
    try:
        config = _with_vision(config_class())
        _cut(config)
        return auto_class.from_config(config_class.from_dict(config.to_dict()))
    except Exception:  # lists of block types that want the number they were made for, say
        return auto_class.from_config(_with_vision(config_class()))


def _with_vision(config: Any) -> Any:
    """Adds the default tower to a configuration that has none unless asked."""
    if getattr(config, "vision_config", config) is None and "vision_config" in config.sub_configs:
        config.vision_config = config.sub_configs["vision_config"]()
    return config


def _lacks(causal: Any, kind: str) -> str | None:
    if causal.config.is_encoder_decoder:
        return "encoder and decoder: an answer does not continue its question's tokens"
    if causal.get_output_embeddings() is None:
        return "no head of its own (get_output_embeddings)"
    if causal.base_model is causal:
        return "its head cannot be taken off (base_model is the whole model)"
    if kind == "images":
        try:
            parts(causal)
        except (ValueError, AttributeError, NotImplementedError, TypeError):
            return "no vision tower and language model that can be told apart"
        if not hasattr(causal.base_model, "get_image_features"):
            return "features of a picture cannot be had by themselves (get_image_features)"
    return None


def _cut(config: Any) -> None:
    for name in BLOCKS:
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, min(2, getattr(config, name)))
    if isinstance(getattr(config, "layer_types", None), list):
        config.layer_types = config.layer_types[:2]
    for name in getattr(config, "sub_configs", {}):
        if getattr(config, name, None) is not None:
            _cut(getattr(config, name))
