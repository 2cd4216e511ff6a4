"""Rows of a JSON file, their numbers as the text that stands in the file.

What is unusual: rows may have different columns and nested cells, and a column may hold numbers here and texts there.

One real example, of which the answer is "12.0" and not 12::

    {"question": "How many litres?", "answer": 12.0}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datamodules.sources.text_rows import BYTE_ORDER_MARK, TextRows, not_utf8, numbered_lines

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_SPACE = re.compile(r"[ \t\r\n]*")


class JsonRows(TextRows):
    """Rows of one file.

    Args:
        path: A file with an object a line, or a `.json` file with an array of objects.
        field: Key of a `.json` file's outer object under which the array is; None where there is no outer object.

    Raises:
        ValueError: It cannot be read, holds no rows, or a row is no object; the message names the line or row, and not
            the file.
    """

    def __init__(self, path: Path, field: str | None = None) -> None:
        self.field = field
        self._columns: dict[str, None] = {}
        super().__init__(path)
        self.column_names = list(self._columns)

    def _find(self) -> Iterator[int]:
        if self.field is not None or (self.path.suffix.lower() == ".json" and _first_sign(self.path) == "["):
            yield from self._find_in_array()
            return
        for number, start, line in numbered_lines(self.path):
            if line.strip():
                try:
                    row = _DECODER.decode(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number} is not JSON ({error.msg}, column {error.colno})") from error
                except RecursionError as error:
                    raise ValueError(f"line {number} is not JSON that can be read ({error})") from error
                self._note(row, f"line {number}")
                yield start

    def _find_in_array(self) -> Iterator[int]:
        """Walks through the file's text once; it is let go afterwards."""
        data = self.path.read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(not_utf8(data.count(b"\n", 0, error.start) + 1, error)) from error
        byte, before = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0, 0
        ascii_alone = text.isascii()
        del data
        try:
            for number, (start, row) in enumerate(_elements(text, _array_start(text, self.field)), start=1):
                self._note(row, f"row {number}")
                byte += start - before if ascii_alone else len(text[before:start].encode("utf-8"))
                before = start
                yield byte
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno} is not JSON ({error.msg}, column {error.colno})") from error
        except RecursionError as error:
            raise ValueError(f"the file is not JSON that can be read ({error})") from error

    def _take_apart(self, text: str) -> dict[str, Any]:
        row: dict[str, Any] = _DECODER.raw_decode(text, _after_space(text, 0))[0]
        return row

    def _note(self, row: Any, where: str) -> None:
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected an object of cells by column, got {row!r:.60}")
        if not self._columns.keys() >= row.keys():
            self._columns |= dict.fromkeys(row)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _first_sign(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    return start[:1].decode("ascii", "replace")


def _array_start(text: str, field: str | None) -> int:
    """Returns where the opening bracket of the rows stands."""
    at = _after_space(text, 0)
    if field is None:
        return at
    if text[at : at + 1] == "{":
        at = _after_space(text, at + 1)
        while text[at : at + 1] == '"':
            key, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _expected(":", text, _after_space(text, at)))
            if key == field and text[at : at + 1] == "[":
                return at
            _, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, at)
            if text[at : at + 1] != ",":
                break
            at = _after_space(text, at + 1)
    raise ValueError(f"there is no list under the key {field!r}")


def _elements(text: str, at: int) -> Iterator[tuple[int, Any]]:
    """Yields the elements of the array that starts at `at`, each with its place."""
    at = _after_space(text, at + 1)
    while text[at : at + 1] != "]":
        row, end = _DECODER.raw_decode(text, at)
        yield at, row
        at = _after_space(text, end)
        if text[at : at + 1] != "]":
            at = _after_space(text, _expected(",", text, at))


def _expected(sign: str, text: str, at: int) -> int:
    """Returns the place behind a sign that must stand at `at`."""
    if text[at : at + 1] != sign:
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, at)
    return at + 1
