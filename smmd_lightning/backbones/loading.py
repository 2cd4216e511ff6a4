"""Building a Hugging Face model from a backbone's settings, and small questions about loaded ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from smmd_lightning.backbones.adapters import matching, refuse_mismatch
from smmd_lightning.backbones.locate import locate, split_gguf

if TYPE_CHECKING:
    from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel

    from smmd_lightning.backbones.base import Backbone


def build(backbone: Backbone) -> PreTrainedModel:
    """Loads (or, `from_scratch`, makes) the model that a backbone's settings describe.

    Safetensors files are mapped, not read: processes on one host that load the same file in its own dtype share its
    pages until something writes to them.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class, or its files lack weights.
    """
    from transformers import GenerationConfig

    folder, config, found = read_config(backbone)
    auto_class = backbone.auto_class()
    dtype = "auto" if backbone.dtype == "auto" else getattr(torch, backbone.dtype)
    if not backbone.from_scratch:
        model, report = auto_class.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation=backbone.attention,
            output_loading_info=True,
            **found,
        )
        if report["missing_keys"]:  # transformers would go on with random weights in their place
            refuse_mismatch(
                f"the weights of {backbone.path!r} do not fit {type(model).__name__}",
                missing=sorted(report["missing_keys"]),
                unexpected=sorted(report["unexpected_keys"]),
                wrong_shape=[],
            )
        return model
    model = auto_class.from_config(
        config,
        dtype=config.dtype or torch.float32 if dtype == "auto" else dtype,
        attn_implementation=backbone.attention,
        trust_remote_code=backbone.trust_remote_code,
    )
    if model.can_generate():
        # Where the folder has none, the one made from the model's configuration stays.
        with suppress(OSError):
            model.generation_config = GenerationConfig.from_pretrained(folder, revision=backbone.revision or "main")
    return model


def read_config(backbone: Backbone) -> tuple[str, PretrainedConfig, dict[str, Any]]:
    """Reads the configuration of the model that a backbone's settings describe.

    Returns:
        The model's folder or hub name, its configuration, and the options with which its files are found.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class.
    """
    from transformers import AutoConfig

    from smmd_lightning.backbones.tiny.tower import register

    register()
    folder, gguf = split_gguf(locate(backbone.path))
    found: dict[str, Any] = {"revision": backbone.revision, "trust_remote_code": backbone.trust_remote_code}
    if gguf is not None:
        found["gguf_file"] = gguf
    try:
        config = AutoConfig.from_pretrained(folder, **found)
    except (OSError, ValueError) as error:
        raise (OSError if isinstance(error, OSError) else ValueError)(
            f"the model {backbone.path!r} (revision {backbone.revision!r}) cannot be loaded: {error} Check "
            "model.backbone.init_args.path, and the network or HF_HUB_OFFLINE."
        ) from error
    auto_class = backbone.auto_class()
    if type(config) not in auto_class._model_mapping and not _has_remote_code(config, auto_class):
        raise ValueError(
            f"{backbone.path!r} is a {config.model_type!r} model, which {auto_class.__name__} cannot build; "
            f"{type(backbone).__name__} is not the class for it"
        )
    return folder, config, found


def check_names(backbone: Backbone) -> PreTrainedModel:
    """Looks up adapter targets and frozen names in a copy of the model without weights.

    Args:
        backbone: A backbone that is not loaded; neither it nor torch's generators change.

    Returns:
        The copy, frozen as the backbone will be, without its adapter.

    Raises:
        OSError: The model cannot be found.
        ValueError: The model's kind does not fit the backbone's class, or a setting fits nothing in it.
    """
    _, config, _ = read_config(backbone)
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        causal = backbone.auto_class().from_config(config, trust_remote_code=backbone.trust_remote_code)
    backbone.freeze_parts(causal)
    if backbone.adapter is not None:
        backbone.adapter.targets(causal, backbone.language_module(causal))
        matching(causal, backbone.adapter.also_train)
    return causal


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
    if hasattr(causal, "_require_grads_hook"):
        causal.disable_input_require_grads()


@contextmanager
def runnable_here(causal: PreTrainedModel) -> Iterator[None]:
    """Lets a model that asks for a GPU's attention kernel run while its weights are still on the CPU."""
    wanted = causal.config._attn_implementation
    if causal.device.type != "cpu" or wanted in (None, "eager", "sdpa"):
        yield
        return
    causal.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        causal.set_attn_implementation(wanted)


def greedy_config(own: GenerationConfig, max_new_tokens: int) -> GenerationConfig:
    """Returns settings for plain greedy decoding that keep only a model's special tokens.

    Args:
        own: The model's generation settings.
        max_new_tokens: Most tokens to add.
    """
    from transformers import GenerationConfig

    end = own.eos_token_id
    first_end = end[0] if isinstance(end, (list, tuple)) else end
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        use_cache=True,
        # What generate would otherwise fill in from the model's own settings:
        temperature=1.0,
        top_k=50,
        top_p=1.0,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        bos_token_id=own.bos_token_id,
        eos_token_id=end,
        pad_token_id=first_end if own.pad_token_id is None else own.pad_token_id,
    )


def is_sharded(module: nn.Module) -> bool:
    """Whether parameters are spread over processes (FSDP), so that all must run the same number of steps."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return False
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    return any(isinstance(part, (FSDPModule, FullyShardedDataParallel)) for part in module.modules())
