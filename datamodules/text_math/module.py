"""Text math: arithmetic and word problems drawn on the fly, or problems from files and the hub.

One real example, in YAML, GSM8K with its reasoning, the last tenth of its training file for validation::

    data:
      class_path: datamodules.TextMathDataModule
      init_args:
        problems:
          class_path: datamodules.MathFiles
          init_args: {train: gsm8k/train.jsonl, test: gsm8k/test.jsonl}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from datamodules.base import NumericDataModule
from datamodules.sources.origins import Drawn, Files, Fractions, Hub, Samples, Split
from datamodules.text_math.arithmetic import Operation, SyntheticArithmetic
from datamodules.text_math.tables import FileMath, HubMath, MathColumns
from datamodules.text_math.word_problems import SyntheticWordProblems
from smmd_lightning.types import Source


@dataclass
class DrawnArithmetic(Drawn):
    """Arithmetic drawn on the fly; no problem of validation or test ever comes up in training.

    Attributes:
        operations: What occurs.
        digits: Fewest and most digits of an operand.
        terms: Fewest and most operands.
        distribution: How operands are drawn: `uniform` over all numbers, `digits` (each length equally often), `log`.
        decimals: Decimal places of the operands, among their digits.
        negative: Whether results may be negative.
        test: What the test split asks: `interpolation` (the training ranges), `extrapolation`, or `both` in turn.
        test_digits: Fewest and most digits under extrapolation. None: as in training.
        test_terms: Fewest and most operands under extrapolation. None: as in training.
        style: `symbols` ("3 + 5") or `words` ("3 plus 5").
        reasoning: Whether the answer shows each step and ends in `#### result`.
        fractions: Shares of the problems that train, val and test get.
    """

    reader = SyntheticArithmetic
    operations: Sequence[Operation] = ("addition", "subtraction")
    digits: tuple[int, int] = (1, 2)
    terms: tuple[int, int] = (2, 2)
    distribution: Literal["uniform", "digits", "log"] = "uniform"
    decimals: int = 0
    negative: bool = True
    test: Literal["interpolation", "extrapolation", "both"] = "interpolation"
    test_digits: tuple[int, int] | None = None
    test_terms: tuple[int, int] | None = None
    style: Literal["symbols", "words"] = "symbols"
    reasoning: bool = False
    fractions: Fractions = (0.8, 0.1, 0.1)


@dataclass
class DrawnWordProblems(Drawn):
    """Word problems drawn from templates on the fly, with their solutions.

    Attributes:
        templates: Names of the templates in use. None: all.
        largest: Largest of the numbers that a story draws freely.
        test_largest: The same for the test split, to ask beyond training. None: as in training.
        reasoning: Whether the answer shows its steps and ends in `#### result`.
        calculator: Whether steps carry GSM8K's calculator marks.
        fractions: Shares of the problems that train, val and test get.
    """

    reader = SyntheticWordProblems
    templates: Sequence[str] | None = None
    largest: int = 20
    test_largest: int | None = None
    reasoning: bool = True
    calculator: bool = False
    fractions: Fractions = (0.8, 0.1, 0.1)


@dataclass
class MathFiles(Files):
    """JSONL, JSON, CSV or Parquet files: GSM8K, MetaMathQA, mathematics_dataset, or columns of your own.

    Attributes:
        columns: What the columns are called. None: found out, for known layouts.
        reasoning: Whether answers keep the reasoning; without it only the final answer is left.
        calculator: Whether reasoning keeps GSM8K's calculator marks (`<<48/2=24>>`).
        only_numeric: Whether rows whose final answer is no number are left out.
    """

    reader = FileMath
    columns: MathColumns | None = None
    reasoning: bool = True
    calculator: bool = False
    only_numeric: bool = False


@dataclass
class MathHub(Hub):
    """A data set on the Hugging Face hub, by default `openai/gsm8k`.

    Attributes:
        columns: What the columns are called. None: found out, for known layouts.
        reasoning: Whether answers keep the reasoning; without it only the final answer is left.
        calculator: Whether reasoning keeps GSM8K's calculator marks.
        only_numeric: Whether rows whose final answer is no number are left out.
    """

    reader = HubMath
    name: str = "openai/gsm8k"
    train: str = "train[:90%]"
    val: str = "train[90%:]"
    columns: MathColumns | None = None
    reasoning: bool = True
    calculator: bool = False
    only_numeric: bool = False


class TextMathDataModule(NumericDataModule):
    """Problems in words and figures, answered with a number.

    Args:
        processor: Folder or hub name of the model's tokenizer; linked to the backbone's path by the command line.
        problems: Where the problems come from. None: arithmetic, drawn.
        prompts: Wordings around the problem, with `{question}` (drawn arithmetic: `{expression}`) in them; one is
            chosen a sample. None: a plain one.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        problems: Samples | None = None,
        prompts: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.problems = problems or DrawnArithmetic()
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the samples of a split."""
        return self.problems.open(split, seed=self.seed, prompts=self.prompts)
