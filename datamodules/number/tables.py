"""Tables and chat files of questions whose answers are numbers.

One real example, a line of a file with the pictures beside it::

    {"image": "gauges/7.jpg", "question": "What is the pressure?", "answer": "62 psi"}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from datamodules.number.chats import chat_column, split_chat
from datamodules.sources.images import ImageLimits
from datamodules.sources.open_tables import read_table
from datamodules.sources.origins import Files, Fractions, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from datamodules.sources.splits import check_split, sample_rng, split_of
from datamodules.sources.tables import Table, check_answer
from smmd_lightning.types import BadSample, NumericExample, SampleKey

log = logging.getLogger(__name__)

KNOWN: dict[str, tuple[str, ...]] = {
    "image": ("image", "images", "file_name", "picture", "path"),
    "question": ("question", "query", "prompt", "instruction", "problem"),
    "answer": ("answer", "label", "response", "output", "solution", "value"),
    "unit": ("unit",),
    "kind": ("kind",),
    "id": ("id",),
}
"""Names of columns that are recognised, the first one there is taken."""


@dataclass(frozen=True)
class NumberColumns:
    """What the columns of a table are called; those left None are recognised by their usual names.

    Attributes:
        image: Path, picture, or a list of either.
        question: The question. It may be missing where `prompts` ask the same of every picture.
        answer: The answer: a number, or reasoning that ends in one.
        unit: Unit, put behind an answer that is a bare number.
        kind: Kind of question, for metrics by kind.
        id: Names the row in predictions.
    """

    image: str | None = None
    question: str | None = None
    answer: str | None = None
    unit: str | None = None
    kind: str | None = None
    id: str | None = None

    def completed(self, table: Table) -> NumberColumns:
        """Returns the columns with those recognised that are not set.

        Raises:
            ValueError: A column that is set is missing, or no column with the answer is recognised.
        """
        given = {name: column for name, column in asdict(self).items() if column is not None}
        table.require(given.values())
        found = {
            name: next((column for column in known if table.has(column)), None) for name, known in KNOWN.items()
        } | given
        if found["answer"] is None or (found["question"] is None and found["image"] is None):
            raise ValueError(
                f"{table.name}: the columns are {', '.join(map(repr, table.rows.column_names))}; say in `columns` "
                "which hold question (or image) and answer, or give a chat file (messages, or conversations)."
            )
        return NumberColumns(**found)


@dataclass
class NumberFiles(Files):
    """Questions from a JSONL, JSON, CSV or Parquet file, with the pictures beside it.

    A file is a table (`image`, `question`, `answer`, …) or a chat file: `messages` as TRL and ms-swift write them, or
    `conversations` as LLaMA-Factory's ShareGPT, with `images`.

    Attributes:
        columns: What a table's columns are called. None: recognised, and said in the log.
        limits: Largest and smallest picture.
    """

    columns: NumberColumns | None = None
    limits: ImageLimits | None = field(default=None)

    def rows(
        self,
        path: str,
        split: Split,
        *,
        fractions: Fractions | None,
        seed: int,
        prompts: Sequence[str] | None = None,
        **task: Any,
    ) -> NumberRows:
        """Returns the rows of a file that belong to a split."""
        table = read_table(path, cache_dir=self.cache_dir)
        return NumberRows(
            table, split, columns=self.columns, fractions=fractions, seed=seed, prompts=prompts, limits=self.limits
        )


class NumberRows:
    """The rows of one split.

    Args:
        table: The rows.
        split: `train`, `val` or `test`.
        columns: What a table's columns are called. None: recognised.
        fractions: Shares of train, val and test when the table holds all three; None when it is the split. Rows are
            dealt out by a hash of picture and question, so rows that ask the same are never in two splits.
        seed: Seed of that and of the choice of prompts.
        prompts: Wordings around the question. None: the question alone.
        limits: Largest and smallest picture.

    Raises:
        ValueError: Columns are missing or not recognised, or a prompt has no place for the question.
    """

    def __init__(
        self,
        table: Table,
        split: str,
        *,
        columns: NumberColumns | None,
        fractions: Fractions | None,
        seed: int,
        prompts: Sequence[str] | None,
        limits: ImageLimits | None,
    ) -> None:
        self.table, self.split, self.seed, self.limits = table, check_split(split), seed, limits
        self.chat = chat_column(table.rows.column_names) if columns is None else None
        self.columns = NumberColumns() if self.chat else (columns or NumberColumns()).completed(table)
        told = self.chat is not None or self.columns.question is not None
        if not told and prompts is None:
            raise ValueError(f"{table.name}: no column holds the question; set prompts to what every picture is asked.")
        self.prompts = check_prompts(prompts or ("{question}",), "question") if told else tuple(prompts or ())
        taken = self.chat or ", ".join(f"{name}={column}" for name, column in asdict(self.columns).items() if column)
        log.info("%s: read as %s (%s)", table.name, "a chat file" if self.chat else "a table", taken)
        self.indices: Sequence[int] = range(len(table))
        if fractions is not None:
            names = (self._name(row, index) for index, row in enumerate(table.rows))
            self.indices = [index for index, name in enumerate(names) if split_of(name, seed, fractions) == split]

    def __len__(self) -> int:
        """Rows of this split."""
        return len(self.indices)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads a row.

        Raises:
            BadSample: Its pictures, question or answer cannot be used; the message names file, row and column.
            ValueError: A picture's path leaves the data folder.
        """
        index, table, columns = self.indices[key.index], self.table, self.columns
        row = table.row(index)
        question, answer, pictures = self._parts(row, index)
        where = table.where(index, self.chat or columns.answer or "")
        answer = check_answer(answer, where)
        meta: dict[str, Any] = {"task": "math"}
        if columns.unit and str(row.get(columns.unit) or "").strip():
            meta["unit"] = str(row[columns.unit]).strip()
            answer = f"{answer} {meta['unit']}" if answer[-1].isdigit() else answer
        if columns.kind:
            meta["kind"] = str(row.get(columns.kind))
        names = [cell for cell in pictures if isinstance(cell, str)]
        if names:
            meta["image"] = names[0] if len(names) == 1 else names
        at = table.where(index, columns.image or "images")
        prompt = pick_prompt(self.prompts, sample_rng(self.seed, self.split, key))
        return NumericExample(
            id=str(row[columns.id]) if columns.id else f"{Path(table.name).stem}-{index + 1}",
            prompt=prompt.replace("{question}", question),
            answer=answer,
            images=tuple(table.image(cell, at, self.limits) for cell in pictures),
            meta=meta,
        )

    def _parts(self, row: Mapping[str, Any], index: int) -> tuple[str, str, list[Any]]:
        """Returns question, answer and pictures of a row."""
        if self.chat:
            present = {name: cell for name, cell in row.items() if cell is not None}
            question, answer, pictures = split_chat(present, self.table.where(index, self.chat))
        else:
            columns = self.columns
            question = _text(row.get(columns.question)) if columns.question else ""
            answer = _text(row.get(columns.answer or ""))
            cell = row.get(columns.image) if columns.image else None
            pictures = list(cell) if isinstance(cell, list) else [] if cell in (None, "") else [cell]
        if not question and (self.chat or self.columns.question):
            raise BadSample(f"{self.table.where(index, self.chat or self.columns.question or '')}: no question")
        return question, answer.strip(), pictures

    def _name(self, row: Mapping[str, Any], index: int) -> str:
        """What tells rows apart for a split."""
        try:
            question, _, pictures = self._parts(row, index)
        except BadSample:
            return f"row {index + 1}"
        return "\n".join([*(cell for cell in pictures if isinstance(cell, str)), question])


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell == cell and cell == int(cell) and abs(cell) < 1e15:
        cell = int(cell)
    return "" if cell is None or isinstance(cell, (list, dict)) else str(cell).strip()
