"""Tiny models: complete Hugging Face folders with random weights, loaded like any other model.

Unusual here: a preset is a row of numbers, not a model. `write` turns it into a folder with configuration, weights,
tokenizer, the family's real processor class and a chat template, so tests and quickstart run the code that loads
Qwen2.5-VL-7B.

One real example: 64-pixel faces cut into 8 x 8 patches that are merged four by four, Qwen2-VL style::

    >>> PRESETS["qwen2-vl"].grid, PRESETS["qwen2-vl"].image_tokens
    (8, 16)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from smmd_lightning.backbones.tiny import families as tiny_families
from smmd_lightning.backbones.tiny.tokenizer import WORDS

Family = Literal["llama", "qwen2", "qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava", "llava-onevision"]


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
        edge = self.patch * (self.merge if self.family.startswith("qwen") else 1)
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
        return (self.grid // (self.merge if self.family.startswith("qwen") else 1)) ** 2


PRESETS: dict[str, TinyPreset] = {
    "llama": TinyPreset("llama"),
    "qwen2": TinyPreset("qwen2", tied=True),
    "qwen2-vl": TinyPreset("qwen2-vl", tied=True),
    "qwen2.5-vl": TinyPreset("qwen2.5-vl"),
    "qwen3-vl": TinyPreset("qwen3-vl", tied=True),
    "llava": TinyPreset("llava"),
    "llava-onevision": TinyPreset("llava-onevision"),
    # Reads plain clock faces, and pie charts, after a few minutes of training on a CPU: weights about as large as
    # 1/sqrt(hidden), slow rotary angles for short rows, and loud positions, so that attention finds the image early.
    "clock": TinyPreset(
        "llava",
        hidden=96,
        heads=3,
        kv_heads=3,
        mlp=256,
        rope_theta=100.0,
        initializer_range=0.1,
        patch=16,
        vision_hidden=96,
        vision_layers=1,
        vision_heads=3,
        vision_mlp=384,
        feature_layer=-1,
        vision={"initializer_range": 0.02},
        scale={"position_embedding": 5.0},
    ),
    # Learns small arithmetic within minutes on a CPU.
    "math": TinyPreset("llama", hidden=128, kv_heads=4, mlp=344, rope_theta=100.0, initializer_range=0.09),
    # For clock faces of all kinds: most of its work is in the vision tower, which has turned dials to make out.
    # Patches come out of overlapping convolutions (`tiny_tower`), so that half as many faces teach it as much.
    "clock-varied": TinyPreset(
        "llava",
        hidden=128,
        kv_heads=4,
        mlp=128,
        rope_theta=100.0,
        initializer_range=0.09,
        patch=16,
        vision_hidden=128,
        vision_layers=3,
        vision_mlp=512,
        feature_layer=-1,
        vision={"model_type": "stemmed_clip_vision_model", "initializer_range": 0.02, "hidden_act": "gelu"},
        scale={"position_embedding": 5.0},
    ),
}
"""The presets behind `tiny:NAME`."""


def find(name: str) -> TinyPreset:
    """Returns a preset by its name, without "tiny:".

    Raises:
        ValueError: There is no such preset.
    """
    if name not in PRESETS:
        close = get_close_matches(name, PRESETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"there is no tiny preset {name!r}{hint} (there are {', '.join(PRESETS)})")
    return PRESETS[name]


def fingerprint(preset: TinyPreset) -> str:
    """Hash of all that determines a preset's folder: its sizes, this code and the version of transformers."""
    here = Path(__file__).parent
    code = b"".join(file.read_bytes() for file in sorted(here.glob("tiny*.py")))
    sizes = json.dumps([asdict(preset), version("transformers"), version("torch")], sort_keys=True, default=str)
    return hashlib.sha256(code + sizes.encode()).hexdigest()[:12]


def write(preset: TinyPreset, folder: str | Path) -> None:
    """Writes a complete Hugging Face folder.

    Weights depend on the preset alone: torch's global generator, default device and default dtype neither matter nor
    change.

    Args:
        preset: The sizes.
        folder: Where to; must exist.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, GenerationConfig

    tokenizer = tiny_families.tokenizer(preset)
    config = tiny_families.config(preset, tokenizer)
    auto = AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(preset.seed)
        model = auto.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            for part, factor in preset.scale.items():
                if part in name:
                    parameter.mul_(factor)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    # Each process fills a draft of its own (`written_once`); transformers would let the first of a group write alone.
    model.should_save_on_this_rank = lambda is_main_process: True
    model.save_pretrained(folder)
    tiny_families.processor(preset, tokenizer).save_pretrained(folder)
