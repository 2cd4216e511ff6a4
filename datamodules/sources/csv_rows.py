"""Rows of a CSV or TSV file, each cell the text that stands there ("007", "NA", "2.50").

One real example, whose second cell holds a comma::

    image,question,answer
    a.png,"Red, green or both?",7
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datamodules.sources.text_rows import TextRows, numbered_lines

LONGEST_CELL = 2**31 - 1
"""Characters; Python's own limit of 131,072 is less than a picture in base64 needs."""

_LINE = re.compile(r"[\r\n]")


class CsvRows(TextRows):
    """Rows of one file, which starts with a line that names the columns.

    Args:
        path: A `.csv` file, its cells parted by commas, or a `.tsv` file, by tabs.

    Raises:
        ValueError: It has no rows, a column's name stands twice, a row has more cells than there are columns, or
            quotation marks do not pair up; the message names the line and not the file.
    """

    def __init__(self, path: Path) -> None:
        self.separator = "\t" if path.suffix.lower() == ".tsv" else ","
        super().__init__(path)

    def _find(self) -> Iterator[int]:
        first, last, starts = 1, 0, [0]  # lines of the present row; where its lines start

        def texts() -> Iterator[str]:
            nonlocal last
            for number, start, line in numbered_lines(self.path):
                if number == first:
                    starts[0] = start
                last = number
                yield line

        rows = self._reader(texts())
        while True:
            try:
                cells = next(rows, None)
            except csv.Error as error:
                raise ValueError(f"line {first}: {error}; look at the quotation marks of this row") from error
            if cells is None:
                break
            if cells and (len(cells) > 1 or cells[0].strip()):
                if self.column_names:
                    self._check(cells, first)
                    yield starts[0]
                else:
                    self.column_names = _names(cells, first)
            first = last + 1
        if not self.column_names:
            raise ValueError("there is no line that names the columns")

    def _take_apart(self, text: str) -> dict[str, Any]:
        if '"' in text:
            cells = next(self._reader(io.StringIO(text, newline="")))
        else:
            cells = _LINE.split(text, maxsplit=1)[0].split(self.separator)
        return dict(zip(self.column_names, cells, strict=False))

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        csv.field_size_limit(LONGEST_CELL)
        return csv.reader(lines, delimiter=self.separator, strict=True)

    def _check(self, cells: list[str], line: int) -> None:
        if any(cell.strip() for cell in cells[len(self.column_names) :]):
            raise ValueError(
                f"line {line} has {len(cells)} cells, and the first line names {len(self.column_names)} columns; put "
                "cells that hold a separator between quotation marks"
            )


def _names(cells: list[str], line: int) -> list[str]:
    # As pandas calls them: its own index, or what stands behind a comma at the end of the line.
    names = [cell or f"Unnamed: {number}" for number, cell in enumerate(cells)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"line {line} names {', '.join(map(repr, repeated))} more than once; give each column its own name"
        )
    return names
