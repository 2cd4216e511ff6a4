"""Rows of a text file, read from the disk when they are asked for.

What is unusual: every cell is the text that stands in the file, so nothing is rounded, shortened or taken for a date;
of a row only its place in the file is kept in memory, and nothing is copied into a cache that could be out of date.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextRows(ABC):
    """Rows of one file; a subclass finds them and takes them apart.

    Args:
        path: The file, in UTF-8.

    Attributes:
        column_names: Columns of all rows together, in the order in which they come up.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.column_names: list[str] = []
        self._version = file_version(path)
        self._places = array("q")  # where each row starts, and where the last one ends
        for place in self._find():
            self._places.append(place)
        if not self._places:
            raise ValueError("the file holds no rows")
        self._places.append(path.stat().st_size)

    @abstractmethod
    def _find(self) -> Iterator[int]:
        """Yields the byte at which each row starts, and fills `column_names`.

        Raises:
            ValueError: The file is broken; the message names the line and not the file.
        """

    @abstractmethod
    def _take_apart(self, text: str) -> dict[str, Any]:
        """Returns the cells by column of the row that `text` starts with."""

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._places) - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Returns the cells of a row (from 0) by column; None where the row has no such cell.

        Raises:
            RuntimeError: The file has changed since it was opened.
        """
        with self._reopened() as file:
            file.seek(self._places[index])
            return self._row(file.read(self._places[index + 1] - self._places[index]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields all rows in order, in one pass over the file.

        Raises:
            RuntimeError: The file has changed since it was opened.
        """
        with self._reopened() as file:
            file.seek(self._places[0])
            for start, end in zip(self._places, self._places[1:], strict=False):
                yield self._row(file.read(end - start))

    def column(self, name: str) -> Iterator[Any]:
        """Yields the cells of a column, in one pass over the file."""
        return (row[name] for row in self)

    def _row(self, data: bytes) -> dict[str, Any]:
        return dict.fromkeys(self.column_names) | self._take_apart(data.decode("utf-8"))

    def _reopened(self) -> BinaryIO:
        if file_version(self.path) != self._version:
            raise RuntimeError(
                f"{self.path} has changed since it was opened. The rows of a run must stay as they are: leave the file "
                "alone while runs read it, and start this one again."
            )
        return self.path.open("rb")


def file_version(path: Path) -> tuple[int, ...]:
    """Returns what changes when a file is written or replaced: size, times in nanoseconds, number on its disk.

    The time of the last change is among them, because copying programs set the time of writing back.
    """
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def numbered_lines(path: Path) -> Iterator[tuple[int, int, str]]:
    """Yields the lines of a file.

    Yields:
        Number (from 1), the byte at which the line starts, and the line with its end; a byte order mark is left out.

    Raises:
        ValueError: A line is no UTF-8; the message names it.
    """
    number, place = 0, 0
    with path.open("rb") as file:
        for long in file:
            # Old programs end lines by a carriage return alone.
            for line in long.splitlines(keepends=True) if b"\r" in long[:-2] else (long,):
                number += 1
                skipped = len(BYTE_ORDER_MARK) if number == 1 and line.startswith(BYTE_ORDER_MARK) else 0
                try:
                    yield number, place + skipped, line[skipped:].decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(not_utf8(number, error)) from error
                place += len(line)


def not_utf8(line: int, error: UnicodeDecodeError) -> str:
    """Says that a line is no UTF-8."""
    return f"line {line} is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
