"""Clocks to read: drawn on the fly, from files, or from the hub.

What is unusual: a drawing is a function of (seed, epoch, index), training draws anew each epoch, and with
`unseen_times` the times of day of the three splits are disjoint, so that a test asks for times never
trained. Dials have twelve hours: three in the afternoon is "03:00", and noon and midnight are "12:00".

One real example::

    source = SyntheticClocks(1000, "test", style="plain", image_size=64)
    source.example(SampleKey(epoch=0, index=0)).answer                       # "02:47"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamodules.clock_times import AnswerFormat, clock_answer, default_prompts, split_times
from datamodules.images import BadSample, ImageLimits
from datamodules.reading import read_hub, read_table
from datamodules.rendering.clock_face import draw_face
from datamodules.rendering.clock_sampling import sample_face
from datamodules.rendering.clock_spec import STYLES, FaceRanges
from datamodules.splits import SPLITS, check_split, pick_prompt, sample_rng, split_of
from datamodules.tables import Table, whole_number
from smmd_lightning.types import NumericExample, SampleKey


class SyntheticClocks:
    """Drawn clocks.

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`.
        style: `plain` or `varied`.
        ranges: What faces look like, instead of the style's ranges.
        image_size: Side of the picture in pixels.
        seed: Seed of times and drawings.
        answer_format: `HH:MM` or `HH:MM:SS`; the latter draws a second hand on every face.
        minute_step: Only every so manieth minute of the hour occurs.
        unseen_times: Whether the splits' times of day are disjoint; otherwise every split has all times.
        fractions: Shares of the times that train, val and test get.
        prompts: Wordings of the question; one is chosen a sample.

    Raises:
        ValueError: A setting is out of range, or the split gets no times.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        style: str = "varied",
        ranges: FaceRanges | None = None,
        image_size: int = 224,
        seed: int = 0,
        answer_format: AnswerFormat = "HH:MM",
        minute_step: int = 1,
        unseen_times: bool = True,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        prompts: Sequence[str] | None = None,
    ) -> None:
        if size < 1 or image_size < 16 or seed < 0:
            raise ValueError(
                "size must be at least 1, image_size at least 16 and seed not negative, "
                f"got {size}, {image_size} and {seed}"
            )
        if style not in STYLES:
            raise ValueError(f"style must be one of {sorted(STYLES)}, got {style!r}")
        self.size, self.image_size, self.seed = size, image_size, seed
        self.split = check_split(split)
        self.style = style if ranges is None else "custom"
        self.ranges = ranges or STYLES[style]
        self.answer_format = answer_format
        self.prompts = tuple(prompts or default_prompts(answer_format))
        if answer_format == "HH:MM:SS":
            self.ranges = FaceRanges(**{**vars(self.ranges), "second_hand": 1.0})
        by_split = split_times(seed, fractions, minute_step)
        self.times = by_split[split] if unseen_times else [time for name in SPLITS for time in by_split[name]]
        if not self.times:
            raise ValueError(
                f"fractions {tuple(fractions)} leave no times of day for {split!r}; raise its share"
            )

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample; outside training all times come up equally often."""
        rng = sample_rng(self.seed, self.split, key)
        training = self.split == "train"
        place = int(rng.integers(len(self.times))) if training else key.index % len(self.times)
        hour, minute = divmod(self.times[place], 60)
        spec = sample_face(rng, ranges=self.ranges)
        second = int(rng.integers(60)) if spec.second_hand else 0
        image = draw_face(spec, hour, minute, second, size=self.image_size)
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if training else f"{self.split}-{key.index}",
            prompt=pick_prompt(self.prompts, rng),
            answer=clock_answer(hour, minute, second, self.answer_format),
            images=(image,),
            meta={
                "task": "clock",
                "hour": hour or 12,
                "minute": minute,
                "second": second,
                "style": self.style,
                "shape": spec.shape,
                "numerals": spec.numerals.system,
            },
        )


@dataclass(frozen=True)
class ClockColumns:
    """What the columns of a clock table are called.

    Attributes:
        image: Path or picture.
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


class TableClocks:
    """Clocks from a table; `FileClocks` and `HubClocks` say where it comes from.

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
        needed = [columns.image, columns.hour, columns.minute, *columns.extra]
        if answer_format == "HH:MM:SS":
            needed.append(columns.second)
        table.require(needed + ([columns.id] if columns.id else []))
        if columns.id:
            table.check_unique(columns.id)
        flags = table.rows[columns.valid] if table.has(columns.valid) else [True] * len(table)
        valid = [
            index for index, flag in enumerate(flags) if str(flag).strip().lower() not in ("false", "0", "no")
        ]
        self.invalid = len(table) - len(valid)
        if fractions is not None:
            names = table.names(columns.image)
            valid = [index for index in valid if split_of(names[index], seed, fractions) == split]
        self.indices = valid

    def __len__(self) -> int:
        """Rows of this split."""
        return len(self.indices)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads a row.

        Raises:
            BadSample: Its picture or its time cannot be used; the message names file, row, column and value.
            ValueError: Its picture's path leaves the data folder.
        """
        table, columns, index = self.table, self.columns, self.indices[key.index]
        row = table.row(index)
        hour = whole_number(row[columns.hour], 0, 23, table.where(index, columns.hour))
        minute = whole_number(row[columns.minute], 0, 59, table.where(index, columns.minute))
        second: int | None = None
        if table.has(columns.second) and row[columns.second] not in (None, ""):
            second = whole_number(row[columns.second], 0, 59, table.where(index, columns.second))
        if second is None and self.answer_format == "HH:MM:SS":
            raise BadSample(f"{table.where(index, columns.second)}: empty, but answers are HH:MM:SS")
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
            meta=meta | {column: row[column] for column in columns.extra},
        )


class FileClocks(TableClocks):
    """Clocks from a JSONL, CSV or Parquet file with the pictures beside it.

    Args:
        path: The file. Picture paths in it are relative to its folder and stay in it.
        split: `train`, `val` or `test`.
        cache_dir: Where `datasets` keeps its copy of the file; None for its own choice.
        **settings: As for `TableClocks`.
    """

    def __init__(
        self, path: str | Path, split: str, *, cache_dir: str | None = None, **settings: Any
    ) -> None:
        super().__init__(read_table(path, cache_dir=cache_dir), split, **settings)


class HubClocks(TableClocks):
    """Clocks from a data set on the hub, or from a local folder laid out like one.

    Args:
        name: `owner/name`, or a folder.
        split: `train`, `val` or `test`.
        hub_split: What the data set calls the split; None for the same.
        config: Name of the configuration, where there are several.
        revision: Branch, tag or commit.
        cache_dir: Where `datasets` keeps its copy; None for its own choice.
        **settings: As for `TableClocks`.
    """

    def __init__(
        self,
        name: str,
        split: str,
        *,
        hub_split: str | None = None,
        config: str | None = None,
        revision: str | None = None,
        cache_dir: str | None = None,
        **settings: Any,
    ) -> None:
        table = read_hub(name, hub_split or split, config=config, revision=revision, cache_dir=cache_dir)
        super().__init__(table, split, **settings)
