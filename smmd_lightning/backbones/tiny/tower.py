"""CLIP's vision tower with a convolutional stem in place of its one projection of pixels.

A patch of 16 x 16 pixels goes through a convolution of 7 x 7 pixels with stride 4, then two of 3 x 3 with stride 2.
Trained from random weights, a small tower makes out fine lines after far fewer images that way
(`benchmarks/results/clock_tiny.md`).

Unusual here: transformers knows no such tower, so it is registered under a model type of its own before a
configuration is made or read. Without `register`, also outside this package, a folder with this tower does not load.

One real example: in a tiny preset, `vision={"model_type": "stemmed_clip_vision_model"}`.

Source: Xiao et al., "Early Convolutions Help Transformers See Better", NeurIPS 2021, arXiv 2106.14881.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import AutoModel, CLIPVisionModel, initialization

from smmd_lightning.backbones.tiny.tower_config import StemmedCLIPVisionConfig, register_config
from smmd_lightning.compat.of_transformers import DrawsItsOwn


class ConvolutionalStem(nn.Sequential):
    """Overlapping convolutions with GELU between them; channels double up to the hidden size."""

    def __init__(self, channels: int, hidden: int, patch: int) -> None:
        """Make the layers.

        Args:
            channels: Of the image.
            hidden: Channels of the last layer.
            patch: How many pixels, along an edge, become one.

        Raises:
            ValueError: `patch` is not 4, 8, 16, …, or `hidden` cannot be halved often enough.
        """
        halvings = patch.bit_length() - 3
        if halvings < 0 or patch != 4 << halvings:
            raise ValueError(f"a convolutional stem needs a patch_size of 4, 8, 16, … pixels, got {patch}")
        if hidden % (1 << halvings):
            raise ValueError(f"hidden_size must be a multiple of {1 << halvings} for patch_size {patch}, got {hidden}")
        width = hidden >> halvings
        layers: list[nn.Module] = [nn.Conv2d(channels, width, kernel_size=7, stride=4, padding=2)]
        while width < hidden:
            layers += [nn.GELU(), nn.Conv2d(width, 2 * width, kernel_size=3, stride=2, padding=1)]
            width *= 2
        super().__init__(*layers)

    @property
    def weight(self) -> torch.Tensor:
        """The first layer's, where CLIP looks up the dtype of its pixels."""
        first = self[0]
        assert isinstance(first, nn.Conv2d)
        return first.weight


class StemmedCLIPVisionModel(DrawsItsOwn, CLIPVisionModel):
    """CLIP's vision tower whose patches come out of a `ConvolutionalStem`."""

    config_class = StemmedCLIPVisionConfig

    def __init__(self, config: StemmedCLIPVisionConfig) -> None:
        """Make the tower.

        Args:
            config: Its sizes; `patch_size` is 4, 8, 16, ….

        Raises:
            ValueError: `patch_size` or `hidden_size` do not fit the stem.
        """
        super().__init__(config)
        if not isinstance(config.patch_size, int):
            raise ValueError(f"patch_size must be one number for square patches, got {config.patch_size}")
        stem = ConvolutionalStem(config.num_channels, config.hidden_size, config.patch_size)
        # Versions of transformers differ in how deep the embeddings lie.
        embeddings = next(part for part in self.modules() if "patch_embedding" in dict(part.named_children()))
        embeddings.add_module("patch_embedding", stem)
        self.post_init()

    def draw(self, module: nn.Module) -> None:
        """Draws convolutions for the nonlinearity behind them."""
        if isinstance(module, nn.Conv2d):
            initialization.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                initialization.zeros_(module.bias)


def register() -> None:
    """Lets transformers' Auto classes know the tower; as often as you like."""
    register_config()
    AutoModel.register(StemmedCLIPVisionConfig, StemmedCLIPVisionModel, exist_ok=True)
