"""Vision towers by themselves: loading, what they give for a picture, and how their pictures are made.

Shape legend: B pictures, P tokens of a picture, C hidden size of the tower.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd_lightning.compat.of_transformers import can_build


def load_tower(path: str, trust_remote_code: bool = False) -> Any:
    """Loads a vision tower by itself, in float32 and evaluation mode; of a larger model, its tower alone.

    Raises:
        ValueError: The model has no vision tower.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForImageTextToText

    config = AutoConfig.from_pretrained(path, trust_remote_code=trust_remote_code)
    options: dict[str, Any] = {"dtype": torch.float32, "trust_remote_code": trust_remote_code}
    if can_build(AutoModelForImageTextToText, config):
        model: Any = AutoModelForImageTextToText.from_pretrained(path, **options)
        tower = model.get_encoder("image")
    else:
        model = AutoModel.from_pretrained(path, **options)
        tower = getattr(model, "vision_model", model) if hasattr(config, "text_config") else model
    sees = getattr(tower, "main_input_name", None) == "pixel_values"
    if not sees or not hasattr(tower.config, "patch_size") or not isinstance(tower.config.patch_size, int):
        raise ValueError(
            f"{path!r} is a {config.model_type!r} model, which gives no row of tokens for square patches of pixels: a "
            "tower like DINOv2, CLIP, SigLIP or ViT is needed"
        )
    return tower.eval()


def extra_tokens(tower: Any, edge: int, layer: int, name: str) -> int:
    """Counts the tokens of a tower that stand for no patch: a class token first, and registers.

    Args:
        tower: The tower.
        edge: Edge of its pictures in pixels.
        layer: Which hidden states are read.
        name: What the user calls it.

    Raises:
        ValueError: It cannot read such pictures, or gives no row of tokens for them.
    """
    try:
        features = hidden_states(tower, noise(edge), layer)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        own = getattr(tower.config, "image_size", None)
        raise ValueError(
            f"the tower {name!r} (layer {layer}) cannot read pictures of {edge} x {edge} pixels ({error}); its own "
            f"image_size is {own}"
        ) from error
    patches = (edge // int(tower.config.patch_size)) ** 2
    if features.ndim != 3 or features.shape[1] < patches:
        raise ValueError(
            f"the tower {name!r} gives features of shape {tuple(features.shape)} for {patches} patches; LLaVA's layout "
            "needs one token for each patch"
        )
    return int(features.shape[1]) - patches


@torch.no_grad()
def hidden_states(tower: Any, pixels: Tensor, layer: int) -> Tensor:
    """Returns the hidden states of one layer, (B, P, C).

    Args:
        tower: The tower.
        pixels: (B, 3, edge, edge).
        layer: Which layer.
    """
    features: Tensor = tower(pixel_values=pixels, output_hidden_states=True, return_dict=True).hidden_states[layer]
    return features


def noise(edge: int) -> Tensor:
    """Returns one picture of noise, (1, 3, edge, edge), always the same."""
    return torch.randn(1, 3, edge, edge, generator=torch.Generator().manual_seed(0))


def picture_edge(config: Any, wanted: int | None, name: str) -> int:
    """Returns the edge of a tower's pictures in pixels.

    Args:
        config: The tower's configuration.
        wanted: The edge asked for; None: the tower's own.
        name: What the user calls the tower.

    Raises:
        ValueError: It is no multiple of the tower's patch.
    """
    edge, patch = wanted if wanted is not None else config.image_size, int(config.patch_size)
    if not isinstance(edge, int) or edge < patch or edge % patch:
        raise ValueError(f"image_size must be a multiple of {patch} pixels, the patch of {name!r}; got {edge}")
    return edge


def pixel_statistics(path: str, trust_remote_code: bool) -> tuple[list[float], list[float]]:
    """Mean and deviation of each channel, from the tower's own files."""
    from transformers import AutoImageProcessor

    try:
        own: Any = AutoImageProcessor.from_pretrained(path, trust_remote_code=trust_remote_code)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path!r} comes without an image processor (preprocessor_config.json), which tells how pixels are scaled"
        ) from error
    return list(own.image_mean), list(own.image_std)
