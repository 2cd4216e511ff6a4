"""Clocks to read, from files and from the hub.

What is unusual: dials have twelve hours, so three in the afternoon is "03:00", and noon and midnight are "12:00".

One real example, a line of a file with the pictures beside it::

    {"image": "images/white_1.jpg", "valid": true, "hour": 12, "minute": 25, "second": 15}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from datamodules.clock.times import AnswerFormat, clock_answer, default_prompts
from datamodules.sources.images import ImageLimits, picture_name
from datamodules.sources.open_tables import read_table
from datamodules.sources.origins import Files, Hub, Split
from datamodules.sources.prompts import pick_prompt
from datamodules.sources.splits import check_split, sample_rng
from datamodules.sources.tables import Table, whole_number
from smmd_lightning.answers import parse_time
from smmd_lightning.types import BadSample, NumericExample, SampleKey


@dataclass(frozen=True)
class ClockColumns:
    """What the columns of a clock table are called.

    Attributes:
        image: Path or picture.
        time: One column with the whole time as people write it ("3:05", "15:05:30"), used instead of hour, minute
            and second; None where those have columns of their own.
        hour: 0 to 23.
        minute: 0 to 59.
        second: 0 to 59; the column may be missing unless the answer needs it.
        valid: Rows in which this is false are left out; the column may be missing.
        id: Names the row in predictions; None for file name and row number.
        extra: Columns that are copied to the samples' `meta`.
    """

    image: str = "image"
    hour: str = "hour"
    minute: str = "minute"
    second: str = "second"
    valid: str = "valid"
    id: str | None = None
    extra: tuple[str, ...] = ()
    time: str | None = None


class TableClocks:
    """Clocks from a table, which `ClockFiles` or `ClockHub` has opened.

    Args:
        table: The rows.
        split: `train`, `val` or `test`.
        columns: What its columns are called.
        fractions: Shares of train, val and test when the table holds all three; None when it is the split.
            Rows are dealt out by a hash of the image's name, so one picture is never in two splits.
        seed: Seed of that and of the choice of prompts.
        answer_format: `HH:MM` or `HH:MM:SS`.
        prompts: Wordings of the question; one is chosen a sample.
        limits: Largest and smallest picture.

    Attributes:
        invalid: How many rows were left out because they are marked as no valid clock.

    Raises:
        ValueError: A column is missing, or two rows share an id.
    """

    def __init__(
        self,
        table: Table,
        split: str,
        *,
        columns: ClockColumns | None = None,
        fractions: Sequence[float] | None = None,
        seed: int = 0,
        answer_format: AnswerFormat = "HH:MM",
        prompts: Sequence[str] | None = None,
        limits: ImageLimits | None = None,
    ) -> None:
        self.table, self.split, self.seed = table, check_split(split), seed
        self.columns = columns = columns or ClockColumns()
        self.answer_format, self.limits = answer_format, limits
        self.prompts = tuple(prompts or default_prompts(answer_format))
        parts = [columns.hour, columns.minute, columns.second][: 3 if answer_format == "HH:MM:SS" else 2]
        needed = [columns.image, *([columns.time] if columns.time else parts), *columns.extra]
        table.require(needed + ([columns.id] if columns.id else []))
        if columns.id:
            table.check_unique(columns.id)
        self.indices, self.invalid = table.rows_of(split, columns.image, seed, fractions), 0
        if table.has(columns.valid):
            valid = np.array([not _is_false(cell) for cell in table.rows.column(columns.valid)], dtype=bool)
            self.indices, self.invalid = self.indices[valid[self.indices]], int((~valid).sum())

    def __len__(self) -> int:
        """Rows of this split."""
        return len(self.indices)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads a row.

        Raises:
            BadSample: Its picture or its time cannot be used; the message names file, row, column and value.
            ValueError: Its picture's path leaves the data folder.
        """
        table, columns, index = self.table, self.columns, int(self.indices[key.index])
        row = table.row(index)
        hour, minute, second = self._time(row, index)
        if second is None and self.answer_format == "HH:MM:SS":
            where = table.where(index, columns.time or columns.second)
            raise BadSample(f"{where}: no seconds, but answers are HH:MM:SS")
        image = table.image(row[columns.image], table.where(index, columns.image), self.limits)
        meta: dict[str, Any] = {
            "task": "clock",
            "hour": hour % 12 or 12,
            "minute": minute,
            "second": second or 0,
        }
        return NumericExample(
            id=str(row[columns.id]) if columns.id else f"{Path(table.name).stem}-{index + 1}",
            prompt=pick_prompt(self.prompts, sample_rng(self.seed, self.split, key)),
            answer=clock_answer(hour, minute, second, self.answer_format),
            images=(image,),
            meta=meta | picture_name(row[columns.image]) | {column: row[column] for column in columns.extra},
        )

    def _time(self, row: Mapping[str, Any], index: int) -> tuple[int, int, int | None]:
        table, columns = self.table, self.columns
        if columns.time:
            time = parse_time(str(row[columns.time]))
            if time is None:
                raise BadSample(f"{table.where(index, columns.time)}: {row[columns.time]!r} is no time of day")
            return time.hour, time.minute, time.second
        hour = whole_number(row[columns.hour], 0, 23, table.where(index, columns.hour))
        minute = whole_number(row[columns.minute], 0, 59, table.where(index, columns.minute))
        if not table.has(columns.second) or row[columns.second] in (None, ""):
            return hour, minute, None
        return hour, minute, whole_number(row[columns.second], 0, 59, table.where(index, columns.second))


def _is_false(cell: Any) -> bool:
    return str(cell).strip().lower() in ("false", "0", "no")


@dataclass
class ClockFiles(Files):
    """Clocks from a JSONL, CSV or Parquet file, with the pictures beside it.

    Attributes:
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    columns: ClockColumns = field(default_factory=ClockColumns)
    limits: ImageLimits = field(default_factory=ImageLimits)

    def rows(self, path: str, split: Split, **task: Any) -> TableClocks:
        """Returns the clocks of a file that belong to a split."""
        table = read_table(path, cache_dir=self.cache_dir)
        return TableClocks(table, split, columns=self.columns, limits=self.limits, **task)


@dataclass
class ClockHub(Hub):
    """Clocks from a data set on the Hugging Face hub, or from a local folder laid out like one.

    Attributes:
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    columns: ClockColumns = field(default_factory=ClockColumns)
    limits: ImageLimits = field(default_factory=ImageLimits)

    def rows(self, table: Table, split: Split, **task: Any) -> TableClocks:
        """Returns the clocks of a table."""
        return TableClocks(table, split, columns=self.columns, limits=self.limits, **task)
