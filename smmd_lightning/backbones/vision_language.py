"""Vision-language models: any image-text-to-text model that transformers knows.

Unusual here: a micro-batch without images still runs the vision tower, on one small blank image whose features are
added as an empty sum, when the tower is trained or sharded. Without it, parameters that one rank used and another did
not would stop DDP (and FSDP's gathers would wait for ever). For the same reason parameters of the tower that no loss
can reach, such as the blocks behind the feature layer that LLaVA reads, are frozen at load.

One real example: LLaVA with a frozen tower, its projector and language model trained::

    VisionLanguageBackbone("llava-hf/llava-1.5-7b-hf", dtype="bfloat16", freeze_vision=True)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from smmd_lightning.backbones.base import Backbone
from smmd_lightning.backbones.generation import is_sharded
from smmd_lightning.backbones.loading import runnable_here
from smmd_lightning.backbones.probes import evaluating
from smmd_lightning.backbones.processors import load_processor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

log = logging.getLogger(__name__)


class VisionLanguageBackbone(Backbone):
    """An image-text-to-text model, whose parts can be frozen one by one.

    The parts are found in the model itself. The projector is whatever belongs neither to the vision tower nor to the
    language model, and those children of the tower that merge patches (Qwen's `merger`).

    Args:
        path: As in `Backbone`.
        freeze_vision: Do not train the vision tower.
        freeze_projector: Do not train what turns its features into token embeddings.
        freeze_language: Do not train the language model and its head.
        **settings: Everything else that `Backbone` takes.
    """

    def __init__(
        self,
        path: str,
        *,
        freeze_vision: bool = False,
        freeze_projector: bool = False,
        freeze_language: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(path, **settings)
        self.freeze_vision = freeze_vision
        self.freeze_projector = freeze_projector
        self.freeze_language = freeze_language
        self._blank: dict[str, Tensor] | None = None

    def auto_class(self) -> Any:
        """Returns `AutoModelForImageTextToText`."""
        from transformers import AutoModelForImageTextToText

        return AutoModelForImageTextToText

    def language_module(self, causal: PreTrainedModel) -> nn.Module:
        """Returns the language model inside the vision-language model."""
        return causal.get_decoder()

    def freeze_parts(self, causal: PreTrainedModel) -> None:
        """Freezes vision tower, projector and language model as the settings say, then the patterns in `freeze`."""
        frozen = {"vision": self.freeze_vision, "projector": self.freeze_projector, "language": self.freeze_language}
        for part, names in parts(causal).items():
            for parameter in names.values():
                parameter.requires_grad_(parameter.requires_grad and not frozen[part])
        super().freeze_parts(causal)

    def settle(self) -> None:
        """Freezes trained vision parameters that no image feature depends on."""
        causal = self.causal
        trained = {name: parameter for name, parameter in self._vision_parameters() if parameter.requires_grad}
        if not trained:
            return
        with torch.enable_grad(), evaluating(self), runnable_here(causal):
            total = sum(feature.float().sum() for feature in self._blank_features())
            assert isinstance(total, Tensor)
            # Where none of them is reached, the features hang on nothing that is trained.
            reached = (
                torch.autograd.grad(total, list(trained.values()), allow_unused=True)
                if total.requires_grad
                else [None] * len(trained)
            )
        unreached = [name for name, gradient in zip(trained, reached, strict=True) if gradient is None]
        for name in unreached:
            trained[name].requires_grad_(False)
        if unreached:
            log.info("%d vision parameters reach no output and are not trained: %s", len(unreached), unreached)

    def encode(self, inputs: dict[str, Tensor]) -> Tensor:
        """As in `Backbone.encode`; runs the vision tower even when no row has an image."""
        if "pixel_values" in inputs or not self._must_run_tower():
            return super().encode(inputs)
        # Before the text, as with real images, so that all ranks gather and reduce in one order.
        features = self._blank_features()
        hidden_BTD = super().encode(inputs)
        # An empty slice: its sum is exactly 0, and its gradient too, whatever the features hold.
        return hidden_BTD + sum(feature.flatten()[:0].sum() for feature in features).to(hidden_BTD.dtype)  # type: ignore[union-attr]

    def before_generation(self, inputs: dict[str, Tensor]) -> None:
        """With sharded weights, runs the tower for a batch without images too."""
        if "pixel_values" not in inputs and is_sharded(self):
            with torch.no_grad(), evaluating(self):
                self._blank_features()

    def _vision_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        found = parts(self.causal)
        yield from found["vision"].items()
        yield from found["projector"].items()

    def _must_run_tower(self) -> bool:
        if is_sharded(self):
            return True
        return torch.is_grad_enabled() and any(parameter.requires_grad for _, parameter in self._vision_parameters())

    def _blank_features(self) -> list[Tensor]:
        """Features of one blank image, with everything between pixels and language model in their graph."""
        causal: Any = self.causal
        if self._blank is None:
            self._blank = blank_image(self.path, self.revision, self.trust_remote_code)
        inputs = {name: tensor.to(causal.device) for name, tensor in self._blank.items()}
        inputs["pixel_values"] = inputs["pixel_values"].to(causal.dtype)
        output = causal.base_model.get_image_features(**inputs, return_dict=True)
        deep = getattr(output, "deepstack_features", None)  # Qwen3-VL feeds several blocks of the decoder
        return list(_tensors([output.pooler_output, deep]))


def parts(causal: PreTrainedModel) -> dict[str, dict[str, nn.Parameter]]:
    """Sorts the parameters of a vision-language model into "vision", "projector" and "language".

    Args:
        causal: The model with its head.

    Raises:
        ValueError: No vision tower or no language model can be found in it.
    """
    tower, decoder, head = causal.get_encoder("image"), causal.get_decoder(), causal.get_output_embeddings()
    if tower is None or tower is causal or tower is causal.base_model or decoder in (causal, causal.base_model):
        raise ValueError(
            f"{type(causal).__name__} has no vision tower and language model that can be told apart: "
            "freeze by name patterns (`freeze`) and use LanguageBackbone"
        )
    merging = [child for name, child in tower.named_children() if "merger" in name]
    language = {id(parameter) for module in (decoder, head) for parameter in module.parameters()}
    projector = {id(parameter) for module in merging for parameter in module.parameters()}
    vision = {id(parameter) for parameter in tower.parameters()} - projector
    found: dict[str, dict[str, nn.Parameter]] = {"vision": {}, "projector": {}, "language": {}}
    for name, parameter in causal.named_parameters():
        part = "language" if id(parameter) in language else "vision" if id(parameter) in vision else "projector"
        found[part][name] = parameter
    return found


def blank_image(path: str, revision: str | None, trust_remote_code: bool) -> dict[str, Tensor]:
    """Returns the vision inputs of one small blank image, made by the model's own processor.

    Args:
        path: As in `Backbone`.
        revision: As in `Backbone`.
        trust_remote_code: As in `Backbone`.

    Raises:
        ValueError: The model comes without an image processor.
    """
    from PIL import Image

    processor = load_processor(path, revision=revision, trust_remote_code=trust_remote_code)
    if not hasattr(processor, "image_processor"):
        raise ValueError(f"{path!r} comes without an image processor (preprocessor_config.json), which training needs")
    made: Mapping[str, Tensor] = processor.image_processor(images=[Image.new("RGB", (32, 32))], return_tensors="pt")
    return dict(made)


def _tensors(nested: Any) -> Iterator[Tensor]:
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, (list, tuple)):
        for item in nested:
            yield from _tensors(item)
