r"""Text math from files and the hub: GSM8K, MetaMathQA, mathematics_dataset, gpt3_arithmetic, or one's own columns.

What is unusual: the final answer of a solution with reasoning is what its own mark announces (`####`, "The answer is:",
`\boxed{}`), read by the same parser as a model's answers. Calculator marks (`<<48/2=24>>`) can be kept or removed.

One real example, a line of GSM8K::

    {"question": "Natalia sold clips to 48 of her friends in April, and then …",
     "answer": "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nNatalia sold … clips altogether.\n#### 72"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamodules.sources.open_tables import read_table
from datamodules.sources.origins import Files, Hub, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from datamodules.sources.splits import check_split, sample_rng
from datamodules.sources.tables import NO_NUMBER, Table, cell_text
from datamodules.text_math.numeric_rows import flag, is_number, numeric_rows
from smmd_lightning.answers import answer_text
from smmd_lightning.types import BadSample, NumericExample, SampleKey

LONGEST_FINAL_ANSWER = 200
"""Characters; a text that is longer, or has several lines, and no answer mark is a solution without its answer."""

_CALCULATOR = re.compile(r"<<[^<>\n]*>>")


@dataclass(frozen=True)
class MathColumns:
    """What the columns of a table of problems are called.

    Attributes:
        question: The problem.
        answer: The answer, with or without reasoning.
        kind: Kind of problem, for metrics by kind; None where there is none.
        numeric: Whether the answer is a number; None to see for each answer.
        id: Names the row in predictions; None for file name and row number.
        extra: Columns that are copied to the samples' `meta`.
    """

    question: str = "question"
    answer: str = "answer"
    kind: str | None = None
    numeric: str | None = None
    id: str | None = None
    extra: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Returns all columns that must be there."""
        optional = [name for name in (self.kind, self.numeric, self.id) if name is not None]
        return [self.question, self.answer, *optional, *self.extra]


LAYOUTS = (
    MathColumns(kind="module", numeric="numeric", extra=("regime",)),  # mathematics_dataset
    MathColumns(kind="task"),  # gpt3_arithmetic
    MathColumns("query", "response", kind="type"),  # MetaMathQA
    MathColumns("query", "response"),
    MathColumns(),  # GSM8K
)
"""Layouts that are known without being named; the first whose columns are all there is taken."""


class TableMath:
    """Problems from a table, which `MathFiles` or `MathHub` has opened.

    Args:
        table: The rows.
        split: `train`, `val` or `test`.
        columns: What its columns are called. None: one of `LAYOUTS`.
        fractions: Shares of train, val and test when the table holds all three; None when it is the split. Rows are
            dealt out by a hash of the question, so one question is never in two splits.
        seed: Seed of that and of the choice of prompts.
        reasoning: Whether answers keep the reasoning; without it only the final answer is left, a number without
            thousands separators.
        calculator: Whether reasoning keeps GSM8K's calculator marks.
        only_numeric: Whether rows whose final answer is no number are left out.
        prompts: Wordings around the problem, with `{question}` in them; one is chosen per sample.

    Attributes:
        left_out: How many rows were left out because their answer is no number.

    Raises:
        ValueError: A column is missing, two rows share an id, or a prompt has no `{question}`.
    """

    def __init__(
        self,
        table: Table,
        split: str,
        *,
        columns: MathColumns | None = None,
        fractions: Sequence[float] | None = None,
        seed: int = 0,
        reasoning: bool = True,
        calculator: bool = False,
        only_numeric: bool = False,
        prompts: Sequence[str] | None = None,
    ) -> None:
        self.table, self.split, self.seed = table, check_split(split), seed
        self.columns = columns = columns or _known_layout(table)
        self.reasoning, self.calculator = reasoning, calculator
        self.prompts = check_prompts(prompts or ("{question}",), "question")
        table.require(columns.names())
        if columns.id:
            table.check_unique(columns.id)
        chosen = table.rows_of(split, columns.question, seed, fractions)
        kept = chosen[numeric_rows(table.rows, columns.answer, columns.numeric)[chosen]] if only_numeric else chosen
        self.indices, self.left_out = kept, len(chosen) - len(kept)

    def __len__(self) -> int:
        """Rows of this split."""
        return len(self.indices)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads a row.

        Raises:
            BadSample: A cell cannot be used; the message names file, row, column and value.
        """
        table, columns, index = self.table, self.columns, int(self.indices[key.index])
        row = table.row(index)
        question = cell_text(row[columns.question], table.where(index, columns.question))
        solution = cell_text(row[columns.answer], table.where(index, columns.answer))
        final = _final_answer(solution, table.where(index, columns.answer))
        numeric = self._flag(row, index)
        if numeric is None:
            numeric = is_number(final)
        answer = (solution if self.calculator else _CALCULATOR.sub("", solution)) if self.reasoning else final
        if not self.reasoning and numeric and re.fullmatch(r"\D*\d{1,3}(?:,\d{3})+(?:\.\d+)?\D*", final):
            answer = final.replace(",", "")
        meta: dict[str, Any] = {"task": "math", "numeric": numeric, "final": final}
        if columns.kind:
            meta["kind"] = str(row[columns.kind])
        prompt = pick_prompt(self.prompts, sample_rng(self.seed, self.split, key))
        return NumericExample(
            id=str(row[columns.id]) if columns.id else f"{Path(table.name).stem}-{index + 1}",
            prompt=prompt.replace("{question}", question),
            answer=answer,
            meta=meta | {column: row[column] for column in columns.extra},
        )

    def _flag(self, row: Mapping[str, Any], index: int) -> bool | None:
        column = self.columns.numeric
        if column is None:
            return None
        said = flag(row[column])
        if said is None:
            raise BadSample(f"{self.table.where(index, column)}: {row[column]!r} is neither true nor false")
        return said


@dataclass
class MathFiles(Files):
    """Problems from JSONL, JSON, CSV or Parquet files: GSM8K, MetaMathQA, mathematics_dataset, or columns of your own.

    Attributes:
        columns: What the columns are called. None: found out, for known layouts.
        reasoning: Whether answers keep the reasoning; without it only the final answer is left.
        calculator: Whether reasoning keeps GSM8K's calculator marks (`<<48/2=24>>`).
        only_numeric: Whether rows whose final answer is no number are left out.
    """

    columns: MathColumns | None = None
    reasoning: bool = True
    calculator: bool = False
    only_numeric: bool = False

    def rows(self, path: str, split: Split, **task: Any) -> TableMath:
        """Returns the problems of a file that belong to a split."""
        return TableMath(read_table(path, cache_dir=self.cache_dir), split, **_how(self), **task)


@dataclass
class MathHub(Hub):
    """Problems from a data set on the Hugging Face hub (`openai/gsm8k`, `meta-math/MetaMathQA`), or a folder like one.

    Attributes:
        config: Name of the configuration. None: "main" of `openai/gsm8k`, and the only one elsewhere.
        columns: What the columns are called. None: found out, for known layouts.
        reasoning: Whether answers keep the reasoning; without it only the final answer is left.
        calculator: Whether reasoning keeps GSM8K's calculator marks.
        only_numeric: Whether rows whose final answer is no number are left out.
    """

    name: str = "openai/gsm8k"
    train: str = "train[:90%]"
    val: str = "train[90%:]"
    columns: MathColumns | None = None
    reasoning: bool = True
    calculator: bool = False
    only_numeric: bool = False

    def __post_init__(self) -> None:
        if self.config is None and self.name == "openai/gsm8k":
            self.config = "main"

    def rows(self, table: Table, split: Split, **task: Any) -> TableMath:
        """Returns the problems of a table."""
        return TableMath(table, split, **_how(self), **task)


def _how(settings: MathFiles | MathHub) -> dict[str, Any]:
    """How rows are read, wherever they come from."""
    return {name: getattr(settings, name) for name in ("columns", "reasoning", "calculator", "only_numeric")}


def _known_layout(table: Table) -> MathColumns:
    for columns in LAYOUTS:
        if all(table.has(name) for name in columns.names()):
            return columns
    raise ValueError(
        f"{table.name}: the columns are {', '.join(map(repr, table.rows.column_names))}; say in `columns` which hold "
        "question and answer (known without that: question and answer, or query and response)."
    )


def _final_answer(solution: str, where: str) -> str:
    final = answer_text(solution)
    if final.lstrip("+-").lower() in NO_NUMBER:
        raise BadSample(f"{where}: {final!r} is no answer")
    if len(final) > LONGEST_FINAL_ANSWER or "\n" in final or not any(map(str.isalnum, final)):
        start = solution if len(solution) < 60 else solution[:57] + "..."
        raise BadSample(f"{where}: {start!r} has no final answer (#### 72, or: The answer is 72)")
    return final
