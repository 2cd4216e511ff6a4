"""One row of a chat file as a question, its pictures and its answer.

What is unusual: the layouts of TRL and ms-swift (`messages` of `role` and `content`, the content a text or a list of
parts), and LLaMA-Factory's ShareGPT (`conversations` of `from` and `value`) come down to one. `<image>` in a text says
where a picture stood; pictures go before the question here, so the mark is removed.

One real example::

    split_chat({"messages": [{"role": "user", "content": "<image>What is shown?"},
                              {"role": "assistant", "content": "62 psi"}], "images": ["a.png"]}, "row 1")
    # ("What is shown?", "62 psi", ["a.png"])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smmd_lightning.types import BadSample

CHATS = ("messages", "conversations")
"""Columns that hold a chat."""

ROLES = {"human": "user", "gpt": "assistant"}
"""ShareGPT's names of the speakers."""


def chat_column(columns: list[str]) -> str | None:
    """Returns the column that holds a chat, or None."""
    return next((name for name in CHATS if name in columns), None)


def split_chat(row: Mapping[str, Any], where: str) -> tuple[str, str, list[Any]]:
    """Takes a chat row apart.

    Args:
        row: The row's cells by column.
        where: What to call the row in errors.

    Returns:
        Question, answer, pictures. A system message stands before the question, parted from it by a blank line.

    Raises:
        BadSample: The chat is not an optional system message, a question, and an answer.

    >>> split_chat({"conversations": [{"from": "human", "value": "1+1?"}, {"from": "gpt", "value": "2"}]}, "row 1")
    ('1+1?', '2', [])
    """
    turns = row.get(chat_column(list(row)) or "")
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise BadSample(f"{where}: the chat is no list of messages")
    pictures: list[Any] = []
    said: list[tuple[str, str]] = []
    for turn in turns:
        role = str(turn.get("role", turn.get("from")))
        text, inside = _parts(turn.get("content", turn.get("value")), where)
        pictures += inside
        said.append((ROLES.get(role, role), text))
    given = row.get("images", row.get("image"))
    if given is not None and not pictures:
        pictures = list(given) if isinstance(given, list) else [given]
    roles = [role for role, _ in said]
    if roles not in (["user", "assistant"], ["system", "user", "assistant"]):
        raise BadSample(
            f"{where}: the turns are {', '.join(roles) or 'none'}; what can be trained is one question and its answer, "
            "with or without a system message before them"
        )
    question = "\n\n".join(text for _, text in said[:-1] if text)
    return question, said[-1][1], pictures


def _parts(content: Any, where: str) -> tuple[str, list[Any]]:
    """Returns the text and the pictures of a message."""
    if isinstance(content, str):
        return content.replace("<image>", "").strip(), []
    if not isinstance(content, list):
        raise BadSample(f"{where}: a message holds {content!r}, neither a text nor a list of parts")
    texts, pictures = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind in ("image", "image_url"):
            found = part.get("image", part.get("path", part.get("url")))
            pictures += [] if found is None else [found]
        else:
            raise BadSample(f"{where}: a part of a message is {part!r}, neither text nor image")
    return "\n".join(texts).replace("<image>", "").strip(), pictures
