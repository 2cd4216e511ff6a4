"""Configurations and processors of the younger families of tiny models; see `families`.

Unusual here: as there, what differs is what the real checkpoints have. LLaVA-NeXT cuts pictures into tiles and adds
learned line ends; Mistral 3 reads pictures of any shape, four patches to a token, a row's end as a token of its own;
Gemma 3 looks at all of a row in every second block and at its neighbourhood in the others.
"""

from __future__ import annotations

from typing import Any

from smmd_lightning.backbones.tiny.preset import TinyPreset

FAMILIES = ("qwen3", "gemma3-text", "llava-next", "mistral3")
TEXT_FAMILIES = ("qwen3", "gemma3-text")


def current_config(
    preset: TinyPreset, text: dict[str, Any], vision: dict[str, Any], image_id: int, special: dict[str, Any]
) -> Any:
    """Returns the configuration of a preset's model.

    Args:
        preset: The sizes, of one of `FAMILIES`.
        text: Settings of the text configuration.
        vision: Settings of the vision configuration; empty for a language model.
        image_id: Id of the token that stands for a part of a picture.
        special: Ids of begin, end and pad token.
    """
    import transformers

    tied: dict[str, Any] = {"tie_word_embeddings": preset.tied}
    head: dict[str, Any] = {"head_dim": preset.hidden // preset.heads}
    if preset.family == "qwen3":
        return transformers.Qwen3Config(**text, **head, **tied)
    if preset.family == "gemma3-text":
        kinds = ["sliding_attention" if block % 2 == 0 else "full_attention" for block in range(preset.layers)]
        rope = dict.fromkeys(("sliding_attention", "full_attention"), text["rope_parameters"])
        own = {"rope_parameters": rope, "layer_types": kinds, "sliding_window": 32, "query_pre_attn_scalar": 16}
        return transformers.Gemma3TextConfig(**{**text, **own}, **head, **tied)
    if preset.family == "llava-next":
        return transformers.LlavaNextConfig(
            text_config={"model_type": "llama", **text, **tied},
            vision_config={"model_type": "clip_vision_model", **vision},
            image_token_index=image_id,
            image_grid_pinpoints=pinpoints(preset),
            vision_feature_layer=preset.feature_layer,
            vision_feature_select_strategy="default",
            **special,
            **tied,
        )
    return transformers.Mistral3Config(
        text_config={"model_type": "mistral", **text, **head, **tied},
        vision_config={"model_type": "pixtral", "head_dim": preset.vision_hidden // preset.vision_heads, **vision},
        image_token_index=image_id,
        spatial_merge_size=preset.merge,
        vision_feature_layer=-1,
        **special,
        **tied,
    )


def current_processor(preset: TinyPreset, tokenizer: Any, pixels: dict[str, Any]) -> Any:
    """Returns the processor of a vision-language family.

    Args:
        preset: The sizes, of "llava-next" or "mistral3".
        tokenizer: Its tokenizer.
        pixels: Mean and deviation of the channels.
    """
    import transformers

    square = {"height": preset.image_size, "width": preset.image_size}
    if preset.family == "llava-next":
        images: Any = transformers.LlavaNextImageProcessor(
            size={"shortest_edge": preset.image_size},
            crop_size=square,
            image_grid_pinpoints=pinpoints(preset),
            **pixels,
        )
        return transformers.LlavaNextProcessor(
            image_processor=images,
            tokenizer=tokenizer,
            patch_size=preset.patch,
            vision_feature_select_strategy="default",
            num_additional_image_tokens=1,  # CLIP's class token, which "default" drops again
            chat_template=tokenizer.chat_template,
        )
    return transformers.PixtralProcessor(
        image_processor=transformers.PixtralImageProcessor(
            size={"longest_edge": preset.image_size}, patch_size=preset.patch * preset.merge, **pixels
        ),
        tokenizer=tokenizer,
        patch_size=preset.patch,
        spatial_merge_size=preset.merge,
        chat_template=tokenizer.chat_template,
    )


def pinpoints(preset: TinyPreset) -> list[list[int]]:
    """The layouts of tiles that a picture may be cut into: one, or two side by side or stacked."""
    edge = preset.image_size
    return [[edge, edge], [edge, 2 * edge], [2 * edge, edge]]
