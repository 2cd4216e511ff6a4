"""The sizes of a tiny model, checked when they are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from smmd_lightning.backbones.tiny.tokenizer import WORDS

Family = Literal[
    "llama", "qwen2", "qwen3", "gemma3-text", "qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava", "llava-onevision",
    "llava-next", "mistral3",
]  # fmt: skip


@dataclass(frozen=True)
class TinyPreset:
    """Sizes of a tiny model.

    Attributes:
        family: Which architecture, processor and markup.
        hidden: Hidden size of the language model.
        layers: Its blocks.
        heads: Its attention heads; `hidden` is a multiple of twice their number.
        kv_heads: Its key-value heads; None for as many as heads.
        mlp: Inner size of its MLPs.
        rope_theta: Base of its rotary angles; small ones suit short texts.
        initializer_range: Standard deviation of its random weights.
        tied: Whether the head is the embedding.
        image_size: Edge of the (square) image in pixels that the processor makes at most.
        patch: Edge of a patch in pixels.
        merge: Qwen only: edge, in patches, of what becomes one token.
        temporal: Qwen only: frames that a patch spans; an image is repeated.
        vision_hidden: Hidden size of the vision tower; a multiple of four times its heads.
        vision_layers: Its blocks.
        vision_heads: Its attention heads.
        vision_mlp: Inner size of its MLPs.
        feature_layer: LLaVA only: the hidden states of the tower that are read; LLaVA-1.5 takes the last but one.
        pixel_mean: Subtracted from each channel (0 to 1).
        pixel_std: Divides each channel.
        words: What is one token each, with its leading space where it has one.
        text: Further settings of the text configuration, as transformers calls them.
        vision: Further settings of the vision configuration.
        scale: Factors for the fresh weights whose names contain a key, e.g. `{"position_embedding": 5.0}`.
        seed: Seed of the weights.
    """

    family: Family
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int | None = 2
    mlp: int = 128
    rope_theta: float = 10_000.0
    initializer_range: float = 0.05
    tied: bool = False
    image_size: int = 64
    patch: int = 8
    merge: int = 2
    temporal: int = 2
    vision_hidden: int = 64
    vision_layers: int = 2
    vision_heads: int = 4
    vision_mlp: int = 128
    feature_layer: int = -2
    pixel_mean: float = 0.5
    pixel_std: float = 0.5
    words: tuple[str, ...] = WORDS
    text: Mapping[str, Any] = field(default_factory=dict)
    vision: Mapping[str, Any] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        edge = self.patch * (self.merge if self.family.startswith(("qwen", "mistral3")) else 1)
        if self.image_size % edge:
            raise ValueError(f"image_size must be a multiple of {edge} pixels (patch x merge), got {self.image_size}")
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden must be a multiple of twice the heads ({2 * self.heads}), got {self.hidden}")
        if self.vision_hidden % (4 * self.vision_heads):
            raise ValueError(
                f"vision_hidden must be a multiple of four times vision_heads ({4 * self.vision_heads}), "
                f"got {self.vision_hidden}"
            )

    @property
    def grid(self) -> int:
        """Patches along an edge of the image."""
        return self.image_size // self.patch

    @property
    def image_tokens(self) -> int:
        """Tokens of one square image of full size, Qwen and LLaVA-1.5."""
        return (self.grid // (self.merge if self.family.startswith(("qwen", "mistral3")) else 1)) ** 2
