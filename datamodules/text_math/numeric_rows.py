"""Which rows of a table have a number as answer, told once for all splits."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from datamodules.sources.rows import Rows
from smmd_lightning.answers import answer_text, parse_quantity

TRUE, FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})

_PLAIN = re.compile(r"-?(?:\d{1,15}|\d{1,3}(?:,\d{3}){1,4})(?:\.\d{1,15})?", re.ASCII)


def is_number(final: str) -> bool:
    """Whether a final answer is one number; the parser is asked where it is not plainly one.

    >>> is_number("1,080"), is_number("5 km"), is_number("12:48 PM")
    (True, True, False)
    """
    return _PLAIN.fullmatch(final) is not None or parse_quantity(final) is not None


def flag(cell: Any) -> bool | None:
    """Reads a cell that is true or false; None where it is neither.

    >>> flag(True), flag("No"), flag("perhaps")
    (True, False, None)
    """
    word = str(cell).strip().lower()
    return True if word in TRUE else False if word in FALSE else None


@functools.lru_cache(maxsize=8)
def numeric_rows(rows: Rows, answer: str, numeric: str | None) -> np.ndarray:
    """Tells for each row whether its answer is a number, in one pass over the table.

    Args:
        rows: The rows.
        answer: Column of the answers, with or without reasoning.
        numeric: Column that says whether they are numbers. None: each answer is looked at.

    Returns:
        Bool, (rows,). True as well where `numeric` says neither: reading such a row names it.
    """
    if numeric is not None:
        return np.array([flag(cell) is not False for cell in rows.column(numeric)], dtype=bool)
    return np.array([is_number(answer_text(str(cell))) for cell in rows.column(answer)], dtype=bool)
