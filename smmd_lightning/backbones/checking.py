"""Looking up a backbone's settings in its model before any weights are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from smmd_lightning.backbones.base import Backbone
from smmd_lightning.backbones.loading import read_config
from smmd_lightning.backbones.naming import matching

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def check_names(backbone: Backbone) -> PreTrainedModel:
    """Looks up adapter targets and frozen names in a copy of the model without weights.

    Args:
        backbone: A backbone that is not loaded; neither it nor torch's generators change.

    Returns:
        The copy, frozen as the backbone will be, without its adapter.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class, or a setting fits nothing in it.
    """
    _, config, _ = read_config(backbone.source)
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        causal = backbone.auto_class().from_config(config, trust_remote_code=backbone.trust_remote_code)
    backbone.freeze_parts(causal)
    if backbone.adapter is not None:
        backbone.adapter.check_patterns(backbone.adapter.targets(causal, backbone.language_module(causal)))
        matching(causal, backbone.adapter.also_train)
    return causal
