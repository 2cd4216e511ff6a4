r"""Text from data stays text: what looks like a special token in a question or an answer never becomes one.

Unusual: tokenizers find special tokens anywhere in a text, so a question about "<image>" would ask for a second
picture, and "<|im_end|>" in a document would end the user's turn. A character of no width behind its first sign
keeps the text readable for people and breaks it for the tokenizer. Templates and settings are not touched, data alone.

One real example::

    >>> PlainText(["<image>", "</s>"])("What does <image> mean?")
    'What does <\u200bimage> mean?'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

BREAK = "\u200b"
"""Zero width space; every byte-level and byte-fallback vocabulary can write it."""


class PlainText:
    """Breaks special tokens in a text.

    Args:
        tokens: Their texts. Those of one character cannot be broken and are left out.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        known = sorted({token for token in tokens if len(token) > 1}, key=lambda token: (-len(token), token))
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    @classmethod
    def of(cls, processor: Any) -> PlainText:
        """Returns the one for a processor or tokenizer: its special tokens, and what stands for images and videos."""
        tokenizer = getattr(processor, "tokenizer", processor)
        special = [str(token.content) for token in tokenizer.added_tokens_decoder.values() if token.special]
        media = [getattr(processor, name, None) for name in ("image_token", "video_token", "audio_token")]
        return cls([*special, *tokenizer.all_special_tokens, *(token for token in media if isinstance(token, str))])

    def __call__(self, text: str) -> str:
        """Returns the text with every special token in it broken; a text without one as it is."""
        # Again while there is one: tokens may overlap, and only the first of two is found at once.
        while self._pattern is not None and self._pattern.search(text):
            text = self._pattern.sub(lambda found: found[0][0] + BREAK + found[0][1:], text)
        return text
