"""What a model thinks before it answers is no answer.

One real example, of a model that writes its reasoning into tags::

    >>> without_thoughts("<think>Is it 4? No.</think>5").strip()
    '5'
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"<(think|thinking|thought|reasoning)>(?s:.)*?(?:</\1>|\Z)", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Returns a text of the same length in which blanks stand for the model's reasoning, tags included.

    Reasoning that never ends (cut off by the limit of tokens) reaches to the end of the text: there is no answer then.
    Reasoning whose opening tag stood in the prompt starts where the text does.
    """
    if "<" not in text:
        return text
    text = _BLOCK.sub(lambda block: " " * len(block[0]), text)
    end = max((tag.end() for tag in _CLOSING.finditer(text)), default=0)
    return " " * end + text[end:]
