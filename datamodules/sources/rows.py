"""What all rows have in common, whether they lie in a text file or are memory-mapped, and their split."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from datamodules.sources.splits import deal


class Rows(Protocol):
    """What a table needs of its rows, which lie on the disk."""

    column_names: list[str]

    def __hash__(self) -> int:
        """Tells one opened file from another."""
        ...

    def __len__(self) -> int:
        """Number of rows."""
        ...

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Returns the cells of a row (from 0) by column."""
        ...

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields all rows in order."""
        ...

    def column(self, name: str) -> Iterator[Any]:
        """Yields the cells of a column."""
        ...


@functools.lru_cache(maxsize=8)
def dealt(rows: Rows, column: str, seed: int, fractions: tuple[float, ...]) -> np.ndarray:
    """Deals rows out by the texts or whole numbers of a column, else by the row's number; once for all splits.

    Args:
        rows: The rows.
        column: What names a row: rows that hold the same in it are in the same split.
        seed: Gives another partition.
        fractions: Shares of train, val and test.

    Returns:
        Place of each row's split in `SPLITS`; (rows,) int8.
    """
    names = (
        str(cell) if isinstance(cell, (str, int)) and not isinstance(cell, bool) else f"row {number}"
        for number, cell in enumerate(rows.column(column), start=1)
    )
    return deal(names, seed, fractions)
