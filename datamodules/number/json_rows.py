"""Rows of a JSONL or JSON file, their numbers as the text that stands in the file.

What is unusual: rows may have different columns and nested cells; only the places of the lines are kept in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class JsonRows:
    """Rows of one file.

    Args:
        path: A `.jsonl` file of objects, or a `.json` file with an array of them.

    Raises:
        ValueError: It cannot be read, or a row is no object; the message names file and line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.column_names: list[str] = []
        self.features: dict[str, Any] = {}
        self._whole: list[Any] | None = None
        self._starts: list[int] = []
        if path.suffix.lower() == ".json":
            self._whole = _decoded(path.read_bytes(), f"{path}")
            if not isinstance(self._whole, list):
                raise ValueError(f"{path}: expected an array of rows, got {type(self._whole).__name__}")
            for number, row in enumerate(self._whole, start=1):
                self._note(row, f"{path}: row {number}")
        else:
            place = 0
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        self._note(_decoded(line, f"{path}: line {number}"), f"{path}: line {number}")
                        self._starts.append(place)
                    place += len(line)
        if not len(self):
            raise ValueError(f"{path}: the file holds no rows")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._starts) if self._whole is None else len(self._whole)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Returns the cells of a row by column."""
        if self._whole is not None:
            return self._whole[index]
        with self.path.open("rb") as lines:
            lines.seek(self._starts[index])
            return _decoded(lines.readline(), f"{self.path}: row {index + 1}")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields all rows in order, in one pass over the file."""
        if self._whole is not None:
            yield from self._whole
            return
        with self.path.open("rb") as lines:
            yield from (_decoded(line, f"{self.path}") for line in lines if line.strip())

    def _note(self, row: Any, where: str) -> None:
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected an object of cells by column, got {row!r:.60}")
        self.column_names += [name for name in row if name not in self.column_names]


def _decoded(data: bytes, where: str) -> Any:
    try:
        # Numbers stay text: "12.0", "3" and a number of 40 digits are asked and compared as they are written.
        return json.loads(data.decode("utf-8-sig"), parse_int=str, parse_float=str, parse_constant=str)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{where} cannot be read as JSON: {error}") from error
