"""How many of the digits in the data's answers a numeric vocabulary covers.

Unusual: a tokenizer such as Llama 3's writes "03:05" with the token "05", which is not a number in canonical form.
Where answers are written so, the numeric loss would be absent without a word; training is refused, and the setting
named.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from smmd_lightning.types import SampleKey
from smmd_lightning.vocabulary import NumericVocabulary

LOOKED_AT = 32
"""Training answers that are looked at."""

MOST_ZEROS = 0.01
"""Largest share of digits that may stand in tokens with leading zeros which do not count."""


@dataclass(frozen=True)
class DigitCoverage:
    """Digits of some answers.

    Attributes:
        answers: How many answers.
        digits: Their digits.
        covered: Digits in tokens that are numbers of the vocabulary.
        zeros: Digits in tokens that are none because of a leading zero.
        example: The first answer with such a token; empty for none.
    """

    answers: int
    digits: int
    covered: int
    zeros: int
    example: str

    def __str__(self) -> str:
        """A part of the start-up summary."""
        return f"{100 * self.covered / max(self.digits, 1):.0f} % of the digits of {self.answers} training answers"


def measure(tokenizer: Any, vocabulary: NumericVocabulary, answers: Iterable[str]) -> DigitCoverage:
    """Counts the digits of answers by the tokens they stand in.

    Args:
        tokenizer: The model's tokenizer.
        vocabulary: The numeric tokens.
        answers: Answers as the model is to write them.
    """
    known = set(vocabulary.token_ids.tolist())
    number = digits = covered = zeros = 0
    example = ""
    for answer in answers:
        number += 1
        for token in tokenizer.encode(answer, add_special_tokens=False):
            text = tokenizer.decode([token]).strip()
            here = sum(letter in "0123456789" for letter in text)
            digits += here
            if token in known:
                covered += here
            elif len(text) > 1 and here == len(text) and text[0] == "0":
                zeros, example = zeros + here, example or answer
    return DigitCoverage(number, digits, covered, zeros, example)


def of_training(trainer: Any, tokenizer: Any, vocabulary: NumericVocabulary) -> DigitCoverage | None:
    """Measures the first training answers of a run; None where its data module cannot tell them.

    Args:
        trainer: The trainer, with its data module.
        tokenizer: The model's tokenizer.
        vocabulary: The numeric tokens.
    """
    data = getattr(trainer, "datamodule", None)
    if data is None or not (hasattr(data, "example") and hasattr(data, "size")):
        return None
    answers = []
    with torch.random.fork_rng(devices=[]):
        for index in range(min(data.size("train"), LOOKED_AT)):
            with contextlib.suppress(ValueError):  # a sample that cannot be used
                answers.append(data.example("train", SampleKey(0, index)).answer)
    return measure(tokenizer, vocabulary, answers)


def check_coverage(found: DigitCoverage | None) -> None:
    """Refuses a vocabulary that leaves out numbers as the answers write them.

    Raises:
        ValueError: More than a hundredth of the digits stand in tokens with leading zeros, which do not count.
    """
    if found is not None and found.zeros > MOST_ZEROS * found.digits:
        raise ValueError(
            f"model.vocabulary.leading_zeros=false leaves out {100 * found.zeros / found.digits:.0f} % of the digits "
            f"of {found.answers} training answers: the tokenizer writes {found.example!r} with tokens that begin "
            "with a zero, on which the numeric loss would be absent. Set --model.vocabulary.leading_zeros=true."
        )
