"""Which of the signs between digits group thousands, which one is the decimal sign, and which divide two numbers.

Unusual: a comma is read as English writes it ("1,000" is a thousand), and as a decimal sign where English has no
reading for it ("6,4", "0,125", "1.234,5"). A task with decimal commas says so: then "1,250" is one and a quarter.

One real example::

    >>> [pieces(text) for text in ("1,234.5", "6,4", "1,2,3")]
    [[(0, 7, '1234.5')], [(0, 3, '6.4')], [(0, 1, '1'), (2, 3, '2'), (4, 5, '3')]]
"""

from __future__ import annotations

import re
from typing import Literal

from smmd_lightning.answers.exact import MAX_DIGITS

Decimals = Literal["auto", "point", "comma"]
"""The decimal sign: as the text allows, always the point, or the comma wherever there is one."""

_PIECE = re.compile(r"\d+(?:\.\d+)*|(?<!\.)\.\d+", re.ASCII)
_ENGLISH = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?", re.ASCII)
_SPACED = re.compile(r"[1-9]\d{0,2}(?:(?:\u00a0\d{3})+|(?:'\d{3})+)(?:([.,])\d+)?", re.ASCII)
_CONTINENTAL = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})", re.ASCII)
_ONE_GROUP = re.compile(r"[1-9]\d{0,2}\.\d{3}", re.ASCII)
_COMMA = re.compile(r"\d+,\d+", re.ASCII)
_COMMA_ALONE = re.compile(r"\d+,\d{1,2}|0,\d+", re.ASCII)

Piece = tuple[int, int, str | None]


def pieces(run: str, decimals: Decimals = "auto", listed: bool = False) -> list[Piece]:
    """Splits a run of digits and separators into numbers.

    Args:
        run: Digits with `.`, `,`, `'` and no-break spaces between them.
        decimals: The decimal sign.
        listed: Whether the run stands alone in brackets, as in "(3,4)"; a comma then divides.

    Returns:
        Start, end and digits as `Decimal` knows them; None for what is no number ("1.2.3").
    """
    text = run.rstrip(".,'\u00a0")
    if len(text) <= 2 * MAX_DIGITS:
        digits = _one_number(text, decimals, listed)
        if digits is not None:
            return [(0, len(text), digits)]
    return [
        (piece.start(), piece.end(), piece[0] if piece[0].count(".") < 2 else None) for piece in _PIECE.finditer(text)
    ]


def _one_number(text: str, decimals: Decimals, listed: bool) -> str | None:
    if decimals == "comma" and not listed:
        if _COMMA.fullmatch(text):
            return text.replace(",", ".")
        if _ONE_GROUP.fullmatch(text):
            return text.replace(".", "")
    if _ENGLISH.fullmatch(text):
        return text.replace(",", "")
    if spaced := _SPACED.fullmatch(text):
        bare = re.sub(r"['\u00a0]", "", text)
        return bare.replace(",", ".") if spaced[1] and decimals != "point" else bare if spaced[1] != "," else None
    if decimals != "point" and _CONTINENTAL.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    if decimals == "auto" and not listed and _COMMA_ALONE.fullmatch(text):
        return text.replace(",", ".")
    return None
