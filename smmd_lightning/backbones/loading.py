"""Building a Hugging Face model from plain settings, and small questions about loaded ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from smmd_lightning.backbones.locate import locate, split_gguf
from smmd_lightning.backbones.naming import refuse_mismatch
from smmd_lightning.backbones.quantization import Quantization, keep_layout
from smmd_lightning.compat.of_transformers import attention_of, can_build, leave_inputs_without_gradients

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class ModelSource:
    """Which model is built, and in which form; the attributes are `Backbone`'s settings of the same names.

    Attributes:
        path: Folder, hub name, GGUF file or one of our own names.
        auto_class: The `transformers` Auto class that builds this kind of model.
        wanted_by: Name of the class that asks, for messages.
        revision: Branch, tag or commit on the hub.
        dtype: Name of the parameters' type, or "auto".
        attention: Attention implementation; None: the choice of transformers.
        trust_remote_code: Run Python code that comes with the model.
        from_scratch: New random weights from torch's global generator.
        quantization: How base weights are kept; None: as `dtype` says.
    """

    path: str
    auto_class: Any
    wanted_by: str
    revision: str | None = None
    dtype: str = "float32"
    attention: str | None = None
    trust_remote_code: bool = False
    from_scratch: bool = False
    quantization: Quantization | None = None


def build(source: ModelSource) -> PreTrainedModel:
    """Loads (or, `from_scratch`, makes) a model.

    Args:
        source: Which model.

    Safetensors files are mapped, not read: processes on one host that load the same file in its own dtype share its
    pages until something writes to them.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class, or its files lack weights.
    """
    from transformers import GenerationConfig

    folder, config, found = read_config(source)
    auto_class = source.auto_class
    dtype = "auto" if source.dtype == "auto" else getattr(torch, source.dtype)
    if not source.from_scratch:
        model, report = auto_class.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation=source.attention,
            output_loading_info=True,
            **({} if source.quantization is None else {"quantization_config": source.quantization.config()}),
            **found,
        )
        keep_layout(model)
        if report["missing_keys"]:  # transformers would go on with random weights in their place
            refuse_mismatch(
                f"the weights of {source.path!r} do not fit {type(model).__name__}",
                missing=sorted(report["missing_keys"]),
                unexpected=sorted(report["unexpected_keys"]),
                wrong_shape=[],
            )
        return model
    model = auto_class.from_config(
        config,
        dtype=config.dtype or torch.float32 if dtype == "auto" else dtype,
        attn_implementation=source.attention,
        trust_remote_code=source.trust_remote_code,
    )
    if model.can_generate():
        # Where the folder has none, the one made from the model's configuration stays.
        with suppress(OSError):
            model.generation_config = GenerationConfig.from_pretrained(folder, revision=source.revision or "main")
    return model


def read_config(source: ModelSource) -> tuple[str, PretrainedConfig, dict[str, Any]]:
    """Reads the configuration of the model to build.

    Args:
        source: Which model.

    Returns:
        The model's folder or hub name, its configuration, and the options with which its files are found.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class.
    """
    from transformers import AutoConfig

    from smmd_lightning.backbones.tiny.tower import register

    register()
    folder, gguf = split_gguf(locate(source.path))
    found: dict[str, Any] = {"revision": source.revision, "trust_remote_code": source.trust_remote_code}
    if gguf is not None:
        found["gguf_file"] = gguf
    try:
        config = AutoConfig.from_pretrained(folder, **found)
    except (OSError, ValueError) as error:
        raise (OSError if isinstance(error, OSError) else ValueError)(
            f"the model {source.path!r} (revision {source.revision!r}) cannot be loaded: {error} Check "
            "model.backbone.init_args.path, and the network or HF_HUB_OFFLINE."
        ) from error
    auto_class = source.auto_class
    if not can_build(auto_class, config) and not _has_remote_code(config, auto_class):
        raise ValueError(
            f"{source.path!r} is a {config.model_type!r} model, which {auto_class.__name__} cannot build; "
            f"{source.wanted_by} is not the class for it"
        )
    return folder, config, found


def _has_remote_code(config: PretrainedConfig, auto_class: Any) -> bool:
    return auto_class.__name__ in getattr(config, "auto_map", {})


def special_ids(config: PretrainedConfig) -> set[int]:
    """Ids of all tokens that a configuration gives a role: begin, end, pad, image, video, ….

    Args:
        config: A model's configuration; those nested in it count too.
    """
    ids: set[int] = set()

    def collect(settings: dict[Any, Any]) -> None:
        for name, value in settings.items():
            if isinstance(value, dict):
                collect(value)
            elif str(name).endswith(("token_id", "token_index")) and value is not None:
                ids.update(value if isinstance(value, (list, tuple)) else [value])

    collect(config.to_dict())
    return ids


def checkpoint_blocks(causal: PreTrainedModel) -> None:
    """Makes a model recompute the activations of its blocks in the backward pass.

    Of torch's two kinds this is the one that works under DDP and needs no inputs with gradients. So what transformers
    does for the other kind is undone: it would make a frozen vision tower part of the backward pass.

    Args:
        causal: The model; changed in place.
    """
    enable = getattr(causal, "activation_checkpointing_enable", None) or causal.gradient_checkpointing_enable
    enable({"use_reentrant": False})  # its first parameter; the method's name changed in transformers 5
    leave_inputs_without_gradients(causal)


@contextmanager
def runnable_here(causal: PreTrainedModel) -> Iterator[None]:
    """Lets a model that asks for a GPU's attention kernel run while its weights are still on the CPU."""
    wanted = attention_of(causal.config)
    if causal.device.type != "cpu" or wanted in (None, "eager", "sdpa"):
        yield
        return
    causal.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        causal.set_attn_implementation(wanted)
