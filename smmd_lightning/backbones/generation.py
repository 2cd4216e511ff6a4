"""Continuations of prompts, whatever sampling settings come with a model: the greedy one, or the likeliest ones.

Shape legend: B rows, T positions, W continuations of a row, L generated tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from smmd_lightning.compat.of_transformers import repeats_pictures_by_row

if TYPE_CHECKING:
    from transformers import GenerationConfig


@torch.no_grad()
def continue_prompts(causal: Any, inputs: dict[str, Tensor], max_new_tokens: int, sharded: bool, **options: Any) -> Any:
    """Continues prompts, greedily unless told otherwise.

    Args:
        causal: A Hugging Face model in evaluation mode.
        inputs: Model inputs of left-padded prompts, `input_ids` (B, T) among them.
        max_new_tokens: Most tokens to add.
        sharded: Whether the weights are spread over processes, which must then all run the same number of steps.
        **options: Anything else that `transformers`' `generate` takes.

    Returns:
        Token ids (B, at most `max_new_tokens`) of the continuation alone; rows that ended are filled with pad. With
        `return_dict_in_generate`, what `generate` returns.
    """
    options.setdefault("synced_gpus", sharded)
    config = greedy_config(causal.generation_config, max_new_tokens)
    generation = {key: options.pop(key) for key in list(options) if hasattr(config, key)}
    config.update(**generation)
    tokens = causal.generate(**inputs, generation_config=config, **options)
    return tokens[:, inputs["input_ids"].shape[1] :] if isinstance(tokens, Tensor) else tokens


@torch.no_grad()
def likely_continuations(
    causal: Any, inputs: dict[str, Tensor], max_new_tokens: int, most: int, sharded: bool, **options: Any
) -> tuple[Tensor, Tensor]:
    """Finds the likeliest continuations of prompts by beam search, with their exact probabilities.

    Each step keeps the `most` likeliest prefixes of a row, so the mass that is not found is one minus the sum.

    Args:
        causal: A Hugging Face model in evaluation mode.
        inputs: Model inputs of left-padded prompts, `input_ids` (B, T) among them.
        max_new_tokens: Most tokens to add.
        most: W, continuations of a prompt.
        sharded: Whether the weights are spread over processes.
        **options: Anything else that `transformers`' `generate` takes.

    Returns:
        Token ids (B, W, L), those that ended filled with pad, and the natural logarithm of each one's probability
        (B, W) float32, the likeliest first. One that the limit of tokens ended has the probability of its tokens.

    Raises:
        ValueError: Rows hold several pictures and the model's class does not tell how to repeat them.
    """
    rows = len(inputs["input_ids"])
    if any(len(tensor) != rows for tensor in inputs.values()) and not repeats_pictures_by_row(causal):
        raise ValueError(
            f"{type(causal).__name__} cannot continue prompts of several pictures, or none, in more than one way: set "
            "model.likely_answers to 0 and model.decode to greedy."
        )
    found = continue_prompts(
        causal,
        inputs,
        max_new_tokens,
        sharded,
        num_beams=most,
        num_return_sequences=most,
        length_penalty=0.0,  # a score is then the plain sum of log-probabilities
        early_stopping=False,
        output_scores=True,
        return_dict_in_generate=True,
        **options,
    )
    ids: Tensor = found.sequences[:, inputs["input_ids"].shape[1] :]
    return ids.unflatten(0, (rows, most)), found.sequences_scores.unflatten(0, (rows, most))


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


def end_ids(stop_ids: Sequence[int], own: int | Sequence[int] | None) -> list[int]:
    """Returns the tokens that end an answer: those of the batch where it names any, else the model's own.

    Args:
        stop_ids: `Batch.stop_ids`.
        own: `eos_token_id` of the model's generation settings; 0 is a token like any other.

    >>> end_ids([], 0), end_ids([7], 0), end_ids([], [2, 3]), end_ids([], None)
    ([0], [7], [2, 3], [])
    """
    if stop_ids:
        return list(stop_ids)
    if own is None:
        return []
    return [own] if isinstance(own, int) else list(own)


def cut_off(ids_BT: Tensor, most: int, ends: Sequence[int]) -> list[bool]:
    """Returns for each continuation whether the limit of tokens ended it, and not the model.

    An end token that is the last token allowed still ends the answer.

    Args:
        ids_BT: Continuations as `continue_prompts` gives them.
        most: The limit.
        ends: Tokens that end an answer, see `end_ids`.

    >>> cut_off(torch.tensor([[5, 2, 0], [5, 6, 2], [5, 6, 7]]), 3, [2]), cut_off(torch.tensor([[5, 6]]), 3, [])
    ([False, False, True], [False])
    """
    if ids_BT.shape[1] < most:
        return [False] * len(ids_BT)
    ended_B = torch.isin(ids_BT, torch.tensor(list(ends), dtype=ids_BT.dtype, device=ids_BT.device)).any(1)
    return [not ended for ended in ended_B.tolist()]


def is_sharded(module: nn.Module) -> bool:
    """Whether parameters are spread over processes (FSDP), so that all must run the same number of steps."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return False
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel

    return any(isinstance(part, (FSDPModule, FullyShardedDataParallel)) for part in module.modules())
