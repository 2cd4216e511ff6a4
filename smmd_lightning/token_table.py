"""What a tokenizer's own table says: its plain texts, and how it cuts a run of digits into tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SPACE_MARKERS = ("Ġ", "▁", " ")
"""How tables write a leading space: GPT-2's byte alphabet, SentencePiece, tables of plain strings."""


def plain_entries(tokenizer: Any) -> Iterator[tuple[int, str, str]]:
    """Yield (id, text without its space, text) of every entry that is no special or control token."""
    special = set(tokenizer.all_special_ids)
    special |= {token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special}
    for entry, token_id in tokenizer.get_vocab().items():
        spaced = entry.startswith(SPACE_MARKERS)
        text = entry[1:] if spaced else entry
        if token_id not in special:
            yield token_id, text, " " + text if spaced else text


def digits_of_a_token(tokenizer: Any, pieces: Mapping[str, int]) -> int | None:
    """Returns how many digits make one token, counted from the left, or None where digits are split otherwise."""
    texts = {token_id: text.strip() for text, token_id in pieces.items()}
    for group in (1, 3):
        if all(_reads(tokenizer, number, texts) == digit_groups(number, group) for number in _SAMPLES):
            return group
    return None


_SAMPLES = ("7", "10", "305", "1234", "0050", "9876543", "20260000")


def _reads(tokenizer: Any, number: str, texts: Mapping[int, str]) -> list[str]:
    ids = tokenizer.encode(number, add_special_tokens=False)
    return [texts[token_id] for token_id in ids if token_id in texts]  # a SentencePiece tokenizer puts a space first


def digit_groups(digits: str, group: int) -> list[str]:
    """Cuts a run of digits into groups from the left.

    Example:
        >>> digit_groups("12345", 3)
        ['123', '45']
    """
    return [digits[first : first + group] for first in range(0, len(digits), group)]
