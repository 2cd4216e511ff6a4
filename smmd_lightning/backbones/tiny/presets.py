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
from dataclasses import asdict
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

from smmd_lightning.backbones.tiny import families as tiny_families
from smmd_lightning.backbones.tiny.preset import TinyPreset

PRESETS: dict[str, TinyPreset] = {
    "llama": TinyPreset("llama"),
    "qwen2": TinyPreset("qwen2", tied=True),
    "qwen2-vl": TinyPreset("qwen2-vl", tied=True),
    "qwen2.5-vl": TinyPreset("qwen2.5-vl"),
    "qwen3-vl": TinyPreset("qwen3-vl", tied=True),
    "llava": TinyPreset("llava"),
    "llava-onevision": TinyPreset("llava-onevision"),
    "qwen3": TinyPreset("qwen3", tied=True),
    "gemma3-text": TinyPreset("gemma3-text", tied=True),
    "llava-next": TinyPreset("llava-next"),
    "mistral3": TinyPreset("mistral3"),
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
    # Patches come out of overlapping convolutions (`tower.py`), so that half as many faces teach it as much.
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
    code = b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))
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
