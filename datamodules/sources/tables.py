"""Rows with pictures, whatever file or hub data set they come from (`datamodules.sources.open_tables` opens those).

What is unusual: whatever is wrong with a cell is said with file, row and column (rows count from 1, without a
header); pictures are decoded by `datamodules.sources.images`, and only from the folder that the data came from.

One real example, where a line is `{"image": "images/white_1.jpg", "valid": true, "hour": 12, "minute": 25}`::

    table = read_table("clocks/labels.jsonl", required=("image", "hour", "minute"))
    row = table.row(0)
    table.image(row["image"], table.where(0, "image")).size      # (700, 700)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datamodules.sources.images import ImageLimits, load_image
from datamodules.sources.rows import Rows, dealt
from datamodules.sources.splits import SPLITS
from smmd_lightning.types import BadSample

if TYPE_CHECKING:
    from PIL.Image import Image


EXACT = 2.0**53
"""Below it a float without fraction is one whole number and no other."""

NO_NUMBER = frozenset({"nan", "inf", "infinity"})
"""What programs write where a number is missing or out of range; never the answer to a question."""


class Table:
    """Rows of one file or hub data set.

    Args:
        rows: The rows; they stay on the disk, so that a file of any size can be used.
        name: What error messages call it: the path or the hub name.
        root: Folder that image paths are relative to and must stay in; None where the rows hold the bytes.
        caches: Further folders in which image files may lie (where `datasets` keeps its downloads).
    """

    def __init__(self, rows: Rows, name: str, root: Path | None, caches: tuple[Path, ...] = ()) -> None:
        self.rows = rows
        self.name = name
        self.root = root
        self.caches = caches

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> Mapping[str, Any]:
        """Returns the cells of row `index` (from 0) by column."""
        return self.rows[index]

    def has(self, column: str | None) -> bool:
        """Whether there is such a column."""
        return column is not None and column in self.rows.column_names

    def require(self, columns: Iterable[str]) -> None:
        """Checks that columns are there.

        Raises:
            ValueError: One is missing; the message lists those there are.
        """
        missing = [column for column in columns if column not in self.rows.column_names]
        if missing:
            raise ValueError(
                f"{self.name}: no column {', '.join(map(repr, missing))}; the columns are "
                f"{', '.join(map(repr, self.rows.column_names))}. Name them in the data settings."
            )

    def check_unique(self, column: str) -> None:
        """Checks that no two rows have the same value in `column`.

        Raises:
            ValueError: Two have; the message names both rows.
        """
        first: dict[Any, int] = {}
        for index, value in enumerate(self.rows.column(column)):
            if value in first:
                raise ValueError(f"{self.where(index, column)}: {value!r} is already in row {first[value] + 1}")
            first[value] = index

    def where(self, index: int, column: str) -> str:
        """Names a cell for people: file, row from 1, column."""
        return f"{self.name}: row {index + 1}, column {column!r}"

    def rows_of(self, split: str, column: str, seed: int, fractions: Sequence[float] | None) -> np.ndarray:
        """Returns the rows of a split, in their order.

        Args:
            split: Which.
            column: What names a row: rows that hold the same in it are in the same split.
            seed: Gives another partition.
            fractions: Shares of train, val and test. None: all rows are the split's.

        Returns:
            Numbers of the rows from 0; int64.
        """
        if fractions is None:
            return np.arange(len(self))
        places = dealt(self.rows, column, seed, tuple(fractions))
        return np.flatnonzero(places == SPLITS.index(split))

    def image(self, cell: Any, where: str, limits: ImageLimits | None = None) -> Image:
        """Reads the picture that a cell holds or names.

        Args:
            cell: A path, bytes, a Pillow image, or an undecoded image of `datasets`.
            where: What to call the cell in errors.
            limits: Largest and smallest picture.

        Raises:
            BadSample: It cannot be used; the message names the cell and the reason.
            ValueError: Its path leaves the data folder.
        """
        if isinstance(cell, Mapping) and cell.get("bytes") is None:
            cell = cell.get("path")
        if cell is None or cell == "":
            raise BadSample(f"{where}: no image")
        if not isinstance(cell, str):
            if isinstance(cell, (bool, int, float, list, tuple)):
                raise BadSample(f"{where}: {cell!r} is neither a path nor a picture")
            return load_image(cell, limits=limits, name=where)
        cached = Path(cell).is_absolute() and self._is_cached(cell, where)
        if not cached and self.root is None:
            raise ValueError(f"{where}: {cell!r} is a path, but this data set has no folder of its own")
        try:
            return load_image(cell, root=None if cached else self.root, limits=limits, name=f"{where} ({cell})")
        except BadSample:
            raise
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def _is_cached(self, path: str, where: str) -> bool:
        """Whether a file really lies in one of the caches, whatever `..` and links its path holds."""
        try:
            real = Path(path).resolve()
        except (OSError, RuntimeError) as error:
            raise BadSample(f"{where}: {path!r} cannot be followed ({error})") from error
        return any(real.is_relative_to(cache.resolve()) for cache in self.caches)


def check_answer(text: str, where: str) -> str:
    """Returns an answer's text.

    Args:
        text: The answer, without white space around it.
        where: What to call the cell in errors.

    Raises:
        BadSample: It holds no letter and no digit, or says in words that there is no number.

    >>> check_answer("7 %", "labels.csv: row 1, column 'answer'")
    '7 %'
    """
    if not any(map(str.isalnum, text)) or text.lstrip("+-").lower() in NO_NUMBER:
        raise BadSample(f"{where}: {text!r} is no answer")
    return text


def cell_text(value: Any, where: str, wanted: str = "text") -> str:
    """Returns the text of a cell, without white space around it; typed cells as a person would write them.

    Args:
        value: The cell: text as the file has it, or a value of a Parquet file or hub data set.
        where: What to call the cell in errors.
        wanted: What should stand there, for errors.

    Raises:
        BadSample: Nothing there, NaN or infinity, or a list or object.

    >>> [cell_text(value, "") for value in (" 2.50", 12.0, 0.1, True)]
    ['2.50', '12', '0.1', 'true']
    """
    text = "" if value is None or isinstance(value, (list, tuple, Mapping, bytes)) else str(value).strip()
    if isinstance(value, bool):
        text = text.lower()
    elif isinstance(value, float):
        text = str(int(value)) if value.is_integer() and abs(value) < EXACT else text if math.isfinite(value) else ""
    elif isinstance(value, Decimal):
        text = f"{value:f}"
    if not text:
        raise BadSample(f"{where}: {value!r} is no {wanted}")
    return text


def whole_number(value: Any, lowest: int, highest: int, where: str) -> int:
    """Reads a whole number from a cell: an integer, a float without fraction, or either as text.

    Args:
        value: The cell.
        lowest: Least value allowed.
        highest: Greatest value allowed.
        where: What to call the cell in errors.

    Returns:
        The number.

    Raises:
        BadSample: Missing, NaN, text, with a fraction, or out of range.

    >>> whole_number(" 7 ", 0, 23, "labels.csv: row 1, column 'hour'")
    7
    """
    number: float | None = None
    if isinstance(value, str):
        digits = value.strip().removesuffix(".0")
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        number = int(value) if value == int(value) else None
    if number is None or not lowest <= number <= highest:
        raise BadSample(f"{where}: {value!r} is not a whole number from {lowest} to {highest}")
    return int(number)
