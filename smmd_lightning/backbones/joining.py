"""One vision-language model out of a vision tower and a language model, in LLaVA's layout.

Unusual here: nothing is believed. Before the folder is written, the tower's features and the language model's logits
are compared with those of the parts by themselves; a part that the layout cannot hold as it is (a language model that
caps its logits, a tower that wants more than pixels) is refused with the reason.

One real example::

    join("facebook/dinov2-small", "HuggingFaceTB/SmolLM2-135M-Instruct", "models/smollm2-dinov2", image_size=224)

Shape legend: T positions of a row, P tokens of a picture, V rows of the head, C hidden size of the tower.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from smmd_lightning.backbones.image_template import with_images
from smmd_lightning.backbones.tiny.tower import register
from smmd_lightning.backbones.towers import (
    extra_tokens,
    hidden_states,
    load_tower,
    noise,
    picture_edge,
    pixel_statistics,
)

TOLERANCE = 1e-5
"""Largest relative difference (of norms) that a part may show in its new place, in float32."""


def join(
    tower: str,
    language: str,
    out: str | Path,
    *,
    image_size: int | None = None,
    feature_layer: int = -1,
    image_token: str = "<image>",
    seed: int = 0,
    trust_remote_code: bool = False,
) -> Path:
    """Writes a LLaVA-layout folder whose projector is new and whose other weights are those of the parts, in float32.

    Args:
        tower: Folder or hub name of a vision model: DINOv2, CLIP, SigLIP, ViT, or the tower of a model that has one.
        language: Folder or hub name of a causal language model.
        out: Folder to write; must be empty or not exist.
        image_size: Edge of the square, in pixels, that pictures are padded and resized to. None: the tower's own. Other
            sizes need a tower that interpolates its positions by itself, as DINOv2 does.
        feature_layer: Which hidden states of the tower are read; -1 for the last.
        image_token: What stands for a picture in a text; added to the vocabulary where it is missing.
        seed: Seed of the projector's weights.
        trust_remote_code: Run Python code that comes with the parts.

    Returns:
        The folder.

    Raises:
        OSError: A part cannot be found.
        ValueError: A part does not fit the layout, `image_size` does not fit the tower, or `out` is not empty.
        RuntimeError: A part answers otherwise in its new place.
    """
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose another folder, or move it away.")
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlavaImageProcessor, LlavaProcessor

    register()
    found = {"trust_remote_code": trust_remote_code}
    eyes = load_tower(tower, trust_remote_code)
    speaker: Any = AutoModelForCausalLM.from_pretrained(language, dtype=torch.float32, **found).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(language, **found)
    if tokenizer.eos_token is None and tokenizer.chat_template is None:
        raise ValueError(f"the tokenizer of {language!r} has neither a chat template nor a token that ends an answer")
    edge, patch = picture_edge(eyes.config, image_size, tower), int(eyes.config.patch_size)
    extra = extra_tokens(eyes, edge, feature_layer, tower)
    tokenizer.add_special_tokens({"additional_special_tokens": [image_token]}, replace_extra_special_tokens=False)
    causal = _assemble(eyes, speaker, tokenizer.convert_tokens_to_ids(image_token), feature_layer, extra, seed)
    causal.config.image_seq_length = (edge // patch) ** 2 + max(extra - 1, 0)
    _scale_projector(causal, edge)
    check_parts(causal, eyes, speaker, edge)
    mean, std = pixel_statistics(tower, trust_remote_code)
    square = {"height": edge, "width": edge}
    images = LlavaImageProcessor(
        do_pad=True, size=square, crop_size=square, do_center_crop=False, image_mean=mean, image_std=std
    )
    processor = LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=patch,
        vision_feature_select_strategy=causal.config.vision_feature_select_strategy,
        num_additional_image_tokens=extra,
        chat_template=with_images(tokenizer.chat_template, image_token),
        image_token=image_token,
    )
    causal.should_save_on_this_rank = lambda is_main_process: True  # as in `tiny.presets.write`
    causal.save_pretrained(folder)
    processor.save_pretrained(folder)
    origin = {"tower": Path(tower).name, "language": Path(language).name, "image_size": edge, "projector_seed": seed}
    (folder / "joined_from.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    return folder


def fingerprint(tower: str, language: str) -> str:
    """Hash of what determines a folder joined from our own parts: this code, and the parts' names, which hold hashes.

    Args:
        tower: Folder of the tower.
        language: Folder of the language model.
    """
    here = Path(__file__)
    code = here.read_bytes() + here.with_name("image_template.py").read_bytes()
    return hashlib.sha256(code + f"{Path(tower).name} {Path(language).name}".encode()).hexdigest()[:12]


@torch.no_grad()
def check_parts(causal: Any, tower: Any, language: Any, edge: int) -> None:
    """Compares tower and language model in their new place with the parts by themselves.

    Args:
        causal: The joined model.
        tower: The tower by itself.
        language: The language model by itself.
        edge: Edge of the pictures in pixels.

    Raises:
        RuntimeError: Their answers differ by more than `TOLERANCE`.
    """
    layer = causal.config.vision_feature_layer
    before_PC = hidden_states(tower, noise(edge), layer)
    after_PC = hidden_states(causal.model.vision_tower, noise(edge), layer)
    ids = [token for token in range(13) if token != causal.config.image_token_id]
    inputs = {"input_ids": torch.tensor([ids])}
    before_TV = language(**inputs, use_cache=False).logits[0]
    after_TV = causal(**inputs, use_cache=False).logits[0, :, : before_TV.shape[-1]]
    for what, before, after in (("tower", before_PC, after_PC), ("language model", before_TV, after_TV)):
        difference = float((after - before).norm() / before.norm().clamp_min(1e-12))
        if not difference <= TOLERANCE:
            raise RuntimeError(
                f"the {what} answers otherwise inside LLaVA's layout (relative difference {difference:.2g}, at most "
                f"{TOLERANCE:g}): {type(language if what != 'tower' else tower).__name__} does something between its "
                "hidden states and its output that the layout leaves out. Take another one."
            )


def _assemble(tower: Any, language: Any, image_id: int, layer: int, extra: int, seed: int) -> Any:
    from transformers import AutoModelForImageTextToText, LlavaConfig

    tied = bool(language.config.tie_word_embeddings)
    own = language.generation_config
    roles = {name: getattr(own, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = LlavaConfig(
        text_config=language.config.to_dict(),
        vision_config=tower.config.to_dict(),
        image_token_index=image_id,
        vision_feature_layer=layer,
        vision_feature_select_strategy="default" if extra else "full",
        tie_word_embeddings=tied,
        **roles,
    )
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        causal: Any = AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
        causal.model.vision_tower.load_state_dict(tower.state_dict())
        causal.model.language_model.load_state_dict(language.base_model.state_dict())
        if not tied:
            causal.lm_head.load_state_dict(language.get_output_embeddings().state_dict())
        rows = language.get_input_embeddings().weight.shape[0]
        if image_id >= rows:
            # New rows get the mean of the others (transformers draws around it), so they win no comparison of logits.
            causal.resize_token_embeddings(image_id + 1, mean_resizing=False)
            with torch.no_grad():
                for weight in {causal.get_input_embeddings().weight, causal.get_output_embeddings().weight}:
                    weight[rows:] = weight[:rows].mean(dim=0)
    causal.generation_config = own
    return causal.eval()


@torch.no_grad()
def _scale_projector(causal: Any, edge: int) -> None:
    """Gives the tokens of a picture the size of text's, so that an untrained projector does not drown the question."""
    config = causal.config
    features = hidden_states(causal.model.vision_tower, noise(edge), config.vision_feature_layer)
    projected: Tensor = causal.model.multi_modal_projector(features)
    scale = causal.get_input_embeddings().weight.pow(2).mean().sqrt() / projected.pow(2).mean().sqrt().clamp_min(1e-12)
    last: nn.Linear = causal.model.multi_modal_projector.linear_2
    last.weight.mul_(scale)
    if last.bias is not None:
        last.bias.mul_(scale)
