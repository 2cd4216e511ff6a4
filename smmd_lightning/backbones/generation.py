"""Greedy continuation of prompts, whatever sampling settings come with a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import GenerationConfig


@torch.no_grad()
def continue_prompts(
    causal: Any, inputs: dict[str, Tensor], max_new_tokens: int, sharded: bool, **options: Any
) -> Tensor:
    """Continues prompts, greedily unless told otherwise.

    Args:
        causal: A Hugging Face model in evaluation mode.
        inputs: Model inputs of left-padded prompts, `input_ids` (B, T) among them.
        max_new_tokens: Most tokens to add.
        sharded: Whether the weights are spread over processes, which must then all run the same number of steps.
        **options: Anything else that `transformers`' `generate` takes.

    Returns:
        Token ids (B, at most `max_new_tokens`) of the continuation alone; rows that ended are filled with pad.
    """
    options.setdefault("synced_gpus", sharded)
    config = greedy_config(causal.generation_config, max_new_tokens)
    generation = {key: options.pop(key) for key in list(options) if hasattr(config, key)}
    config.update(**generation)
    tokens: Tensor = causal.generate(**inputs, generation_config=config, **options)
    return tokens[:, inputs["input_ids"].shape[1] :]


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


def cut_off(ids_BT: Tensor, most: int, end_ids: Sequence[int]) -> list[bool]:
    """Returns for each continuation whether the limit of tokens ended it, and not the model.

    Args:
        ids_BT: Continuations as `continue_prompts` gives them.
        most: The limit.
        end_ids: Tokens that end an answer.

    >>> cut_off(torch.tensor([[5, 2, 0], [5, 6, 7]]), 3, [2]), cut_off(torch.tensor([[5, 6]]), 3, [])
    ([False, True], [False])
    """
    if ids_BT.shape[1] < most:
        return [False] * len(ids_BT)
    ended_B = torch.isin(ids_BT, torch.tensor(list(end_ids), dtype=ids_BT.dtype, device=ids_BT.device)).any(1)
    return [not ended for ended in ended_B.tolist()]


def is_sharded(module: nn.Module) -> bool:
    """Whether parameters are spread over processes (FSDP), so that all must run the same number of steps."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return False
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    return any(isinstance(part, (FSDPModule, FullyShardedDataParallel)) for part in module.modules())
