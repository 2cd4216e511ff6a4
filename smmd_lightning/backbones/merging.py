"""Folding a LoRA adapter into the weights that it was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from smmd_lightning.backbones.loading import build
from smmd_lightning.backbones.naming import load_trained

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from smmd_lightning.backbones.base import Backbone


def merge_adapter(model: Any) -> PreTrainedModel:
    """Adds an adapter's updates to the weights and removes the adapter.

    A head that is tied to the embedding and adapted gets weights of its own first: its update must not reach the
    embedding.

    Args:
        model: A peft model; changed in place.

    Returns:
        The model inside, which answers as the adapted one did.
    """
    untie_adapted_head(model.get_base_model())
    merged: PreTrainedModel = model.merge_and_unload()
    return merged


def dequantize(backbone: Backbone) -> None:
    """Loads a quantised backbone again with the weights that the quantised ones stand for; what is trained stays.

    Args:
        backbone: A loaded backbone; changed in place.
    """
    trained = {name: p.detach().clone() for name, p in backbone.named_parameters() if p.requires_grad}
    causal: Any = build(backbone.source).dequantize()
    if backbone.dtype != "auto":
        causal = causal.to(getattr(torch, backbone.dtype))
    assert backbone.adapter is not None
    backbone.model = backbone.adapter.attach(causal, backbone.language_module(causal))
    load_trained(backbone, trained)


def untie_adapted_head(causal: Any) -> None:
    """Gives an adapted head that shares the embedding's weights a copy of them; other heads stay as they are.

    Args:
        causal: The Hugging Face model, its adapter in place; weights and configuration are changed.
    """
    head, embedding = causal.get_output_embeddings(), causal.get_input_embeddings()
    base = getattr(head, "base_layer", None)
    if base is None or base.weight is not getattr(embedding, "base_layer", embedding).weight:
        return
    with torch.no_grad():
        base.weight = nn.Parameter(base.weight.detach().clone(), requires_grad=base.weight.requires_grad)
    for config in (causal.config, causal.config.get_text_config()):
        config.tie_word_embeddings = False
    for part in causal.modules():  # transformers notes ties in every model of a model
        if hasattr(part, "all_tied_weights_keys"):
            part.all_tied_weights_keys = {}
