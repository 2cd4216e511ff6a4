"""Charts with questions: from files in ChartQA's format and others, and from the hub.

What is unusual: a label is kept as the text that the data set gives (a list of one is that one), since the rules
of chart question answering compare texts; a chart that is asked several questions is never in two splits.

One real example, as ChartQA's file has it, with the picture in `png/` beside the file::

    {"imgname": "two_col_2139.png", "query": "How many public swimming pools were there in 2020?", "label": "6.2"}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamodules.chart.drawn import PROMPTS
from datamodules.sources.arrow_rows import ArrowRows
from datamodules.sources.images import ImageLimits, picture_name
from datamodules.sources.open_tables import read_table
from datamodules.sources.origins import Files, Hub, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from datamodules.sources.splits import check_split, sample_rng
from datamodules.sources.tables import Table, cell_text, check_answer
from smmd_lightning.types import NumericExample, SampleKey

PART_COLUMNS = ("human_or_machine", "type")
"""Columns that say whether a person or a program asked, in the two layouts of ChartQA on the hub."""


@dataclass(frozen=True)
class ChartColumns:
    """What the columns of a table of chart questions are called; the defaults are ChartQA's.

    Attributes:
        image: File name, or number with `suffix`, or picture.
        question: The question.
        answer: The answer: text, number, or a list of texts.
        kind: What becomes `meta["kind"]`; None for the part (`human`, `augmented`) where it is known.
        suffix: What is put behind the image's name ("`.png`" for PlotQA's `image_index`).
        extra: Columns that are copied to the samples' `meta`.
    """

    image: str = "imgname"
    question: str = "query"
    answer: str = "label"
    kind: str | None = None
    suffix: str = ""
    extra: tuple[str, ...] = ()


def label_text(value: Any, where: str) -> str:
    """Writes a label as text.

    Args:
        value: Text, a number, or a list of either.
        where: What to call the cell in errors.

    Returns:
        The text; a list of one is that one, longer ones are "[a, b]".

    Raises:
        BadSample: Nothing there that can be an answer.

    >>> label_text(["74"], ""), label_text([2010.0, 2014.0], ""), label_text(6.2, "")
    ('74', '[2010, 2014]', '6.2')
    """
    if isinstance(value, (list, tuple)) and value:
        texts = [label_text(item, where) for item in value]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return check_answer(cell_text(value, where, "answer"), where)


class TableCharts:
    """Chart questions from tables, which `ChartFiles` or `ChartHub` has opened.

    Args:
        tables: Tables, each with the part it holds (`human`, `augmented`, or "" where a column or nothing says).
        split: `train`, `val` or `test`.
        columns: What their columns are called.
        fractions: Shares of train, val and test when the tables hold all three; None when they are the split.
            Rows are dealt out by a hash of the image's name, or of the row's number where it has none.
        seed: Seed of that and of the choice of prompts.
        prompts: Wordings around the question, with `{question}` in them; one is chosen per sample.
        limits: Largest and smallest picture.

    Raises:
        ValueError: A column is missing, or a prompt has no place for the question.
    """

    def __init__(
        self,
        tables: Sequence[tuple[Table, str]],
        split: str,
        *,
        columns: ChartColumns | None = None,
        fractions: Sequence[float] | None = None,
        seed: int = 0,
        prompts: Sequence[str] | None = None,
        limits: ImageLimits | None = None,
    ) -> None:
        self.tables, self.split, self.seed, self.limits = list(tables), check_split(split), seed, limits
        self.columns = columns = columns or ChartColumns()
        self.prompts = check_prompts(prompts or PROMPTS, "question")
        parts = []
        for number, (table, _) in enumerate(self.tables):
            needed = [columns.image, columns.question, columns.answer, *columns.extra]
            table.require(needed + ([columns.kind] if columns.kind else []))
            indices = table.rows_of(split, columns.image, seed, fractions)
            parts.append(np.stack([np.full_like(indices, number), indices], axis=1))
        self.places = np.concatenate(parts)

    def __len__(self) -> int:
        """Questions of this split."""
        return len(self.places)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads a row.

        Raises:
            BadSample: Its picture, question or answer cannot be used; the message names file, row and column.
            ValueError: Its picture's path leaves the data folder.
        """
        number, index = self.places[key.index].tolist()
        (table, part), columns = self.tables[number], self.columns
        row = table.row(index)
        question = cell_text(row[columns.question], table.where(index, columns.question), "question")
        answer = label_text(row[columns.answer], table.where(index, columns.answer))
        cell = row[columns.image]
        if columns.suffix and isinstance(cell, (str, int)):
            cell = f"{cell}{columns.suffix}"
        prompt = pick_prompt(self.prompts, sample_rng(self.seed, self.split, key))
        meta = {"task": "chart", "kind": self._kind(table, row, part)}
        return NumericExample(
            id=f"{Path(table.name).stem}-{index + 1}",
            prompt=prompt.replace("{question}", question),
            answer=answer,
            images=(table.image(cell, table.where(index, columns.image), self.limits),),
            meta=meta | picture_name(cell) | {column: row[column] for column in columns.extra},
        )

    def _kind(self, table: Table, row: Any, part: str) -> str:
        column = self.columns.kind or next((name for name in PART_COLUMNS if table.has(name)), None)
        if column is None:
            return part or "unknown"
        value = row[column]
        labels = table.rows.class_names(column) if isinstance(table.rows, ArrowRows) else None
        text = str(labels[value] if labels and isinstance(value, int) else value)
        if self.columns.kind is None and text in ("0", "1"):  # HuggingFaceM4/ChartQA without the class names
            return ("human", "augmented")[int(text)]
        return {"machine": "augmented"}.get(text, text)


@dataclass
class ChartFiles(Files):
    """Chart questions from a file per split with the pictures beside it, or from ChartQA's folders.

    Each of `train`, `val` and `test` is a file, or a folder as in ChartQA: `*_human.json` and `*_augmented.json` beside
    `png/`.

    Attributes:
        parts: Which of a folder's parts are read (`human`, `augmented`).
        image_folder: Folder of the pictures, seen from the file; picture names stay in it. None: `png` where there is
            such a folder, else the file's own.
        field: Key of a `.json` file's outer object under which the rows are (`qa_pairs` in PlotQA).
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    parts: Sequence[str] = ("human", "augmented")
    image_folder: str | None = None
    field: str | None = None
    columns: ChartColumns | None = None
    limits: ImageLimits | None = None

    def rows(self, path: str, split: Split, **task: Any) -> TableCharts:
        """Returns the questions of a file or folder that belong to a split.

        Raises:
            ValueError: A file or folder is missing or broken, or a folder has none of the parts.
        """
        tables = [self._table(file) for file in _files(Path(path), self.parts)]
        return TableCharts(tables, split, columns=self.columns, limits=self.limits, **task)

    def _table(self, file: Path) -> tuple[Table, str]:
        table = read_table(file, cache_dir=self.cache_dir, field=self.field)
        folder = file.parent / ("png" if self.image_folder is None else self.image_folder)
        if not folder.is_dir() and self.image_folder is not None:
            raise ValueError(f"image_folder {self.image_folder!r}: there is no folder {folder}")
        table.root = folder.resolve() if folder.is_dir() else file.parent.resolve()
        return table, next((part for part in ("human", "augmented") if file.stem.endswith(part)), "")


@dataclass
class ChartHub(Hub):
    """Chart questions from a data set on the Hugging Face hub, or from a local folder laid out like one.

    Attributes:
        columns: What the columns are called. None: as in `HuggingFaceM4/ChartQA` and `ahmed-masry/ChartQA` (`image`,
            `query`, `label`, and `human_or_machine` or `type`).
        limits: Largest and smallest picture.
    """

    name: str = "HuggingFaceM4/ChartQA"
    val: str = "val"
    columns: ChartColumns | None = None
    limits: ImageLimits | None = None

    def rows(self, table: Table, split: Split, **task: Any) -> TableCharts:
        """Returns the questions of a table."""
        columns = self.columns or ChartColumns(image="image")
        return TableCharts([(table, "")], split, columns=columns, limits=self.limits, **task)


def _files(path: Path, parts: Sequence[str]) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [file for part in parts for file in sorted(path.glob(f"*_{part}.json"))]
    if not files:
        raise ValueError(f"{path}: no file named {' or '.join(f'*_{part}.json' for part in parts)}")
    return files
