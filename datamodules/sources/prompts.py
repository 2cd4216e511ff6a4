"""Wordings of a question: checked once, chosen per sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def check_prompts(prompts: Sequence[str], part: str) -> tuple[str, ...]:
    """Returns the wordings around a question.

    Args:
        prompts: One or more wordings.
        part: Name of the placeholder that each must hold, `question` for `{question}`.

    Raises:
        ValueError: There is none, or one has no place for the question.

    >>> check_prompts(["{question} Answer briefly."], "question")
    ('{question} Answer briefly.',)
    """
    if isinstance(prompts, str) or not prompts:
        raise ValueError(f"prompts must be a list of at least one wording, got {prompts!r}")
    for prompt in prompts:
        if f"{{{part}}}" not in prompt:
            raise ValueError(f"each of prompts must hold {{{part}}}, where the question goes; got {prompt!r}")
    return tuple(prompts)


def pick_prompt(prompts: Sequence[str], rng: np.random.Generator) -> str:
    """Returns one of several wordings; the generator is left alone where there is only one."""
    return prompts[0] if len(prompts) == 1 else prompts[int(rng.integers(len(prompts)))]
