"""Which answers to look at, and their pictures.

One real example::

    >>> rows = [{"parsed": "8", "error": 3.0}, {"parsed": "5", "error": 0.0, "correct": True}, {"parsed": None}]
    >>> pick(rows, 1)
    {'worst': [2], 'random': [0], 'best': [1]}
"""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KINDS = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
LARGEST_PICTURE = 1_000_000
"""Bytes; larger ones are left out of the page."""


def pick(rows: Sequence[dict[str, Any]], count: int, seed: int = 0) -> dict[str, list[int]]:
    """Chooses the worst, random and best answers, `count` of each; none is chosen twice.

    Args:
        rows: Rows of the prediction file. An answer that could not be read is worse than any that could.
        count: How many of each.
        seed: Of the random ones, and of the order among equally good ones.

    Returns:
        Row numbers under `worst`, `random` and `best`.
    """
    dice = random.Random(seed)
    numbers = list(range(len(rows)))
    dice.shuffle(numbers)
    by_badness = sorted(numbers, key=lambda number: badness(rows[number]), reverse=True)
    count = min(count, math.ceil(len(rows) / 3))
    worst = [number for number in by_badness[:count] if badness(rows[number]) > 0]
    rest = by_badness[len(worst) :]
    best = [number for number in rest[::-1][:count] if rows[number].get("correct")]
    between = [number for number in numbers if number not in set(worst) | set(best)]
    return {"worst": worst, "random": sorted(between[:count]), "best": best}


def badness(row: dict[str, Any]) -> float:
    """How bad an answer is: its error; infinite if nothing was read; 1 for a wrong text without an error."""
    if row.get("correct"):
        return 0.0
    if row.get("parsed") is None:
        return math.inf
    error = row.get("error")
    return 1.0 if error is None or math.isnan(float(error)) else float(error)


def picture(folder: Path, row: dict[str, Any]) -> str:
    """The picture of a row as a `data:` address; empty where none was stored, or the path names no picture of the run.

    Args:
        folder: The run's folder; a path that leads out of it is not followed.
        row: A row of the prediction file, with the path under `image`.
    """
    name = row.get("image")
    if not isinstance(name, str) or not name:
        return ""
    if "\0" in name:  # which no path can hold
        return ""
    file = (folder / name).resolve()
    kind = KINDS.get(file.suffix.lower())
    if kind is None or not file.is_relative_to(folder.resolve()) or not file.is_file():
        return ""
    content = file.read_bytes()
    if len(content) > LARGEST_PICTURE:
        return ""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
