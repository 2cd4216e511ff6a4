"""Rows of a Parquet file or a hub data set, whose cells have types.

What is unusual: pictures stay undecoded, so that one can be skipped; numbers in single and half precision are those
that a person would write (0.1, and not 0.10000000149011612).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from datasets import Dataset

SHORT = {"float16": np.float16, "half_float": np.float16, "float32": np.float32, "float": np.float32}
"""Types whose numbers have more digits in double precision than they mean."""


class ArrowRows:
    """Rows of a data set of the `datasets` library.

    Args:
        rows: The rows; memory-mapped, so that a file of any size can be used.

    Attributes:
        column_names: The columns.
    """

    def __init__(self, rows: Dataset) -> None:
        import datasets

        for column, feature in rows.features.items():
            if isinstance(feature, datasets.Image):
                rows = rows.cast_column(column, datasets.Image(decode=False))
        self._rows = rows
        self.column_names: list[str] = list(rows.column_names)
        types = {name: SHORT.get(getattr(feature, "dtype", "")) for name, feature in rows.features.items()}
        self._short = {name: kind for name, kind in types.items() if kind is not None}

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Returns the cells of a row (from 0) by column."""
        row: dict[str, Any] = self._rows[index]
        for name in self._short:
            row[name] = self._written(name, row[name])
        return row

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields all rows in order."""
        return (self[index] for index in range(len(self)))

    def column(self, name: str) -> Iterator[Any]:
        """Yields the cells of a column."""
        return (self._written(name, cell) for cell in self._rows[name][:])

    def class_names(self, column: str) -> list[str] | None:
        """Returns what the numbers of a column stand for, or None where it is no column of classes."""
        names: list[str] | None = getattr(self._rows.features[column], "names", None)
        return names

    def _written(self, column: str, cell: Any) -> Any:
        kind = self._short.get(column)
        return cell if kind is None or cell is None else float(str(kind(cell)))
