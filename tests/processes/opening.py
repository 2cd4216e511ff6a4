"""Opens one split of a data source in one call, whichever settings belong to the source and which to its task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TASK = ("prompts", "answer_format")


def open_drawn(kind: type, size: int, split: str, *, seed: int = 0, **settings: Any) -> Any:
    """Opens a split of `size` drawn samples."""
    task = {name: settings.pop(name) for name in TASK if name in settings}
    sizes = {f"{name}_size": size for name in ("train", "val", "test")}
    return kind(**sizes, **settings).open(split, seed=seed, **task)


def open_file(
    kind: type, path: str | Path, split: str, *, fractions: Any = None, seed: int = 0, **settings: Any
) -> Any:
    """Opens a file: the part that `fractions` give the split, or all of it."""
    task = {name: settings.pop(name) for name in TASK if name in settings}
    given = {"val": str(path), "test": str(path)} if fractions is None else {"fractions": fractions}
    return kind(str(path), **given, **settings).open(split, seed=seed, **task)


def open_hub(kind: type, name: str, split: str, *, hub_split: str | None = None, **settings: Any) -> Any:
    """Opens a split of a data set on the hub."""
    task = {name: settings.pop(name) for name in TASK if name in settings}
    return kind(name, **{split: hub_split or split}, **settings).open(split, **task)
