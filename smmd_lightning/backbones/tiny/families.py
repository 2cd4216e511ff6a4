"""What differs between the families of tiny models: configuration, tokenizer markup and processor.

Unusual here: the pairs below mirror what the real checkpoints ship (Qwen2-VL's rotary sections, LLaVA-1.5's CLIP tower
with its class token, LLaVA-OneVision's tiles), only with small numbers. The head has more rows than the tokenizer has
entries, as in real models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smmd_lightning.backbones.tiny import tokenizer as tiny_tokenizer
from smmd_lightning.backbones.tiny.current import (
    FAMILIES,
    TEXT_FAMILIES,
    current_config,
    current_processor,
    pinpoints,
)
from smmd_lightning.backbones.tiny.preset import TinyPreset

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

MARKUP = {
    "llama": "llama",
    "qwen2": "qwen",
    "qwen2-vl": "qwen-vl",
    "qwen2.5-vl": "qwen-vl",
    "qwen3-vl": "qwen-vl",
    "llava": "llava",
    "llava-onevision": "llava-onevision",
    "qwen3": "qwen",
    "gemma3-text": "gemma",
    "llava-next": "llava",
    "mistral3": "mistral3",
}


def tokenizer(preset: TinyPreset) -> PreTrainedTokenizerFast:
    """Returns the tokenizer of a preset's family."""
    return tiny_tokenizer.build(MARKUP[preset.family], preset.words)


def config(preset: TinyPreset, tokenizer: PreTrainedTokenizerFast) -> PretrainedConfig:
    """Returns the configuration of a preset's model.

    Args:
        preset: The sizes.
        tokenizer: What `tokenizer` returned; gives the ids of special tokens.
    """
    import transformers

    from smmd_lightning.backbones.tiny.tower import register

    register()
    special: dict[str, Any] = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    text = {**_text(preset, len(tokenizer)), **special, **preset.text}
    vision = {**_vision(preset), **preset.vision}
    tied: dict[str, Any] = {"tie_word_embeddings": preset.tied}
    token: Callable[[str], Any] = tokenizer.convert_tokens_to_ids
    if preset.family in FAMILIES:
        image_id = 0 if preset.family in TEXT_FAMILIES else token("[IMG]" if preset.family == "mistral3" else "<image>")
        return current_config(preset, text, vision, image_id, special)
    if preset.family == "llama":
        return transformers.LlamaConfig(**text, **tied)
    if preset.family == "qwen2":
        return transformers.Qwen2Config(**text, **tied)
    if preset.family in ("qwen2-vl", "qwen2.5-vl", "qwen3-vl"):
        qwen = {
            "qwen2-vl": transformers.Qwen2VLConfig,
            "qwen2.5-vl": transformers.Qwen2_5_VLConfig,
            "qwen3-vl": transformers.Qwen3VLConfig,
        }[preset.family]
        return qwen(
            text_config=text,
            vision_config=vision,
            image_token_id=token("<|image_pad|>"),
            video_token_id=token("<|video_pad|>"),
            vision_start_token_id=token("<|vision_start|>"),
            vision_end_token_id=token("<|vision_end|>"),
            **special,
            **tied,
        )
    if preset.family == "llava":
        return transformers.LlavaConfig(
            text_config={"model_type": "llama", **text, **tied},
            vision_config={"model_type": "clip_vision_model", **vision},
            image_token_index=token("<image>"),
            image_seq_length=preset.image_tokens,
            vision_feature_layer=preset.feature_layer,
            vision_feature_select_strategy="default",
            **special,
            **tied,
        )
    return transformers.LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text, **tied},
        vision_config={"model_type": "siglip_vision_model", "vision_use_head": False, **vision},
        image_token_index=token("<image>"),
        video_token_index=token("<video>"),
        image_grid_pinpoints=pinpoints(preset),
        **special,
        **tied,
    )


def processor(preset: TinyPreset, tokenizer: PreTrainedTokenizerFast) -> Any:
    """Returns the family's processor, or the tokenizer itself for a language model.

    Args:
        preset: The sizes.
        tokenizer: What `tokenizer` returned.
    """
    import transformers

    pixels: dict[str, Any] = {"image_mean": [preset.pixel_mean] * 3, "image_std": [preset.pixel_std] * 3}
    square = {"height": preset.image_size, "width": preset.image_size}
    template = tokenizer.chat_template
    if preset.family in ("llama", "qwen2", *TEXT_FAMILIES):
        return tokenizer
    if preset.family in FAMILIES:
        return current_processor(preset, tokenizer, pixels)
    if preset.family == "llava":
        images = transformers.CLIPImageProcessor(size={"shortest_edge": preset.image_size}, crop_size=square, **pixels)
        return transformers.LlavaProcessor(
            image_processor=images,
            tokenizer=tokenizer,
            patch_size=preset.patch,
            vision_feature_select_strategy="default",
            num_additional_image_tokens=1,  # CLIP's class token, which "default" drops again
            chat_template=template,
        )
    if preset.family == "llava-onevision":
        return transformers.LlavaOnevisionProcessor(
            image_processor=transformers.LlavaOnevisionImageProcessor(
                size=square, image_grid_pinpoints=pinpoints(preset), **pixels
            ),
            tokenizer=tokenizer,
            video_processor=transformers.LlavaOnevisionVideoProcessor(size=square, **pixels),
            num_image_tokens=preset.image_tokens,
            vision_feature_select_strategy="full",
            chat_template=template,
        )
    kind, video = {
        "qwen2-vl": (transformers.Qwen2VLProcessor, transformers.Qwen2VLVideoProcessor),
        "qwen2.5-vl": (transformers.Qwen2_5_VLProcessor, transformers.Qwen2VLVideoProcessor),
        "qwen3-vl": (transformers.Qwen3VLProcessor, transformers.Qwen3VLVideoProcessor),
    }[preset.family]
    cut: dict[str, Any] = {
        "patch_size": preset.patch,
        "merge_size": preset.merge,
        "temporal_patch_size": preset.temporal,
        # Least and greatest area in pixels; transformers calls them edges.
        "size": {"shortest_edge": (preset.patch * preset.merge) ** 2, "longest_edge": preset.image_size**2},
        **pixels,
    }
    return kind(
        image_processor=transformers.Qwen2VLImageProcessor(**cut),
        tokenizer=tokenizer,
        video_processor=video(**cut),
        chat_template=template,
    )


def _text(preset: TinyPreset, entries: int) -> dict[str, Any]:
    half = preset.hidden // preset.heads // 2
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": preset.rope_theta}
    if preset.family == "qwen3-vl":  # 24, 20, 20 of 64 in the real model
        rope |= {"mrope_section": [half - 2 * (half // 3), half // 3, half // 3], "mrope_interleaved": True}
    elif preset.family.endswith("-vl"):  # 16, 24, 24 of 64
        space = (half - half // 4) // 2
        rope |= {"mrope_section": [half - 2 * space, space, space]}
    head = {"head_dim": preset.hidden // preset.heads} if preset.family == "qwen3-vl" else {}
    return {
        "vocab_size": (entries // 64 + 1) * 64,
        "hidden_size": preset.hidden,
        "intermediate_size": preset.mlp,
        "num_hidden_layers": preset.layers,
        "num_attention_heads": preset.heads,
        "num_key_value_heads": preset.kv_heads or preset.heads,
        "max_position_embeddings": 2048,
        "initializer_range": preset.initializer_range,
        "rope_parameters": rope,
        **head,
    }


def _vision(preset: TinyPreset) -> dict[str, Any]:
    if preset.family in ("llava", "llava-onevision", "llava-next", "mistral3"):
        return {
            "hidden_size": preset.vision_hidden,
            "intermediate_size": preset.vision_mlp,
            "num_hidden_layers": preset.vision_layers,
            "num_attention_heads": preset.vision_heads,
            "image_size": preset.image_size,
            "patch_size": preset.patch,
            **({"projection_dim": preset.vision_hidden} if preset.family in ("llava", "llava-next") else {}),
        }
    qwen = {
        "depth": preset.vision_layers,
        "num_heads": preset.vision_heads,
        "patch_size": preset.patch,
        "spatial_merge_size": preset.merge,
        "temporal_patch_size": preset.temporal,
    }
    if preset.family == "qwen2-vl":
        if preset.vision_mlp % preset.vision_hidden:
            raise ValueError(f"vision_mlp must be a multiple of vision_hidden for qwen2-vl, got {preset.vision_mlp}")
        ratio = preset.vision_mlp // preset.vision_hidden
        return {**qwen, "embed_dim": preset.vision_hidden, "hidden_size": preset.hidden, "mlp_ratio": ratio}
    qwen |= {
        "hidden_size": preset.vision_hidden,
        "intermediate_size": preset.vision_mlp,
        "out_hidden_size": preset.hidden,
    }
    last = preset.vision_layers - 1
    if preset.family == "qwen2.5-vl":  # attention within windows of half the image, but for the last block
        return {**qwen, "window_size": preset.image_size // 2, "fullatt_block_indexes": [last]}
    return {**qwen, "num_position_embeddings": preset.grid**2, "deepstack_visual_indexes": list(range(last))[:1]}
