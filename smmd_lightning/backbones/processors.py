"""A model's own processor: tokenizer, image processor and chat template, ready for training.

Unusual here: what a processor's files leave out is filled in from the model's configuration, and a missing pad token
is borrowed from the vocabulary. Nothing is ever added to the vocabulary, so token ids and head rows stay what they are.

One real example::

    processor = load_processor("Qwen/Qwen2.5-VL-3B-Instruct", options={"max_pixels": 512 * 28 * 28})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PAD_HINTS = ("pad", "reserved")


def load_processor(
    path: str,
    *,
    trust_remote_code: bool = False,
    revision: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Loads the processor of a vision-language model, or the tokenizer of a language model.

    Args:
        path: The model, as `Backbone` takes it.
        trust_remote_code: Run Python code that comes with the model.
        revision: Branch, tag or commit on the hub.
        options: Settings of the image processor that replace those in its files (`max_pixels`, `size`, …).

    Returns:
        A transformers processor or tokenizer, whose pad token is set (see `set_pad_token`).

    Raises:
        OSError: The files cannot be found.
        ValueError: An option is none of the image processor's, or the model takes images but has no image processor.
    """
    from transformers import AutoConfig, AutoProcessor, AutoTokenizer

    from smmd_lightning.backbones.locate import locate, split_gguf

    folder, gguf = split_gguf(locate(path))
    found: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    if gguf is not None:
        _refuse_options(path, options)
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=gguf, **found)
        set_pad_token(tokenizer)
        return tokenizer
    try:
        processor = AutoProcessor.from_pretrained(folder, **found)
    except (OSError, ValueError) as error:
        raise (OSError if isinstance(error, OSError) else ValueError)(
            f"the processor of {path!r} (revision {revision!r}) cannot be loaded: {error} Check "
            "model.backbone.init_args.path, and the network or HF_HUB_OFFLINE."
        ) from error
    if not hasattr(processor, "tokenizer"):  # a language model
        _refuse_options(path, options)
        set_pad_token(processor)
        return processor
    set_image_options(processor, dict(options or {}), path)
    complete_from_config(processor, AutoConfig.from_pretrained(folder, **found))
    set_pad_token(processor.tokenizer)
    return processor


def set_pad_token(tokenizer: Any) -> None:
    """Gives a tokenizer without a pad token one that it already has.

    In this order: a special token with "pad" in its name (Llama 3.1's `<|finetune_right_pad_id|>`), a reserved one
    (Llama 3's `<|reserved_special_token_0|>`), the unknown token (Mistral), the end token. Padding is masked by
    position, never by id, so even the last is safe.

    Args:
        tokenizer: A transformers tokenizer; changed in place, its vocabulary is not.

    Raises:
        ValueError: It has none of these.
    """
    if tokenizer.pad_token_id is not None:
        return
    known = sorted(tokenizer.added_tokens_decoder.items())
    special = [str(token.content) for _, token in known if token.special]
    hinted = [token for hint in PAD_HINTS for token in special if hint in token.lower()]
    candidates = [*hinted, tokenizer.unk_token, tokenizer.eos_token]
    chosen = next((token for token in candidates if token is not None), None)
    if chosen is None:
        raise ValueError(f"{type(tokenizer).__name__} has no pad token, and none that could serve as one")
    tokenizer.pad_token = chosen


def set_image_options(processor: Any, options: Mapping[str, Any], path: str) -> None:
    """Replaces settings of a processor's image processor.

    Args:
        processor: A processor with an `image_processor`; changed in place.
        options: Settings by name; `min_pixels` and `max_pixels` mean the least and greatest area in pixels.
        path: Names the model in errors.

    Raises:
        ValueError: There is no such setting.
    """
    images = processor.image_processor
    for name, value in options.items():
        edge = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}.get(name)
        if edge is not None and edge in _size(images):
            images.size = {**_size(images), edge: value}
        elif hasattr(images, name):
            setattr(images, name, value)
        else:
            raise ValueError(f"processor option {name!r}: {type(images).__name__} of {path!r} has no such setting")


def complete_from_config(processor: Any, config: Any) -> None:
    """Fills in what LLaVA processors saved by older versions lack.

    Args:
        processor: A processor; changed in place.
        config: The model's configuration.
    """
    vision = getattr(config, "vision_config", None)
    if vision is None:
        return
    for name, value in {
        "patch_size": getattr(vision, "patch_size", None),
        "vision_feature_select_strategy": getattr(config, "vision_feature_select_strategy", None),
    }.items():
        if hasattr(processor, name) and getattr(processor, name) is None:
            setattr(processor, name, value)
    # CLIP puts a class token before its patches; files that do not say so count one image token too few.
    if vision.model_type == "clip_vision_model" and getattr(processor, "num_additional_image_tokens", None) == 0:
        processor.num_additional_image_tokens = 1


def _size(images: Any) -> dict[str, int]:
    return {key: value for key, value in dict(images.size or {}).items() if value is not None}


def _refuse_options(path: str, options: Mapping[str, Any] | None) -> None:
    if options:
        raise ValueError(
            f"processor options {sorted(options)}: {path!r} is a language model and has no image processor"
        )
