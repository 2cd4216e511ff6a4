"""Word problems with their reasoning, written on the fly from templates, in the form of GSM8K.

What is unusual: a template computes its own steps, so each answer is exact and each step shows the expression it
follows from. Val and test never use a template with numbers that training uses with it.

One real example, of the template `halves`::

    Mia sold 48 books in April, and half as many in May. How many books did Mia sell in both months?
    Mia sold 48 / 2 = <<48/2=24>>24 books in May.
    Mia sold 48 + 24 = <<48+24=72>>72 books in both months.
    #### 72
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from datamodules.sources.splits import check_fractions, check_split, pick_prompt, sample_rng, split_of
from datamodules.text_math.tables import check_prompts
from datamodules.text_math.word_templates import TEMPLATES, Draw
from smmd_lightning.types import NumericExample, SampleKey

TRIES = 2000
"""Draws for one sample; a split that none of them meets is empty for all purposes."""


class SyntheticWordProblems:
    """Word problems drawn from templates; a sample is a function of (seed, split, epoch, index).

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`.
        templates: Names of the templates in use. None: all of `TEMPLATES`.
        largest: Largest of the numbers that a story draws freely.
        test_largest: The same for the test split, to ask beyond training. None: as in training.
        reasoning: Whether the answer shows its steps and ends in `#### result`; without it only the result.
        calculator: Whether steps carry GSM8K's calculator marks.
        prompts: Wordings with `{question}` in them; one is chosen a sample.
        fractions: Shares of the problems that train, val and test get.
        seed: Seed of everything.

    Raises:
        ValueError: An unknown template, or a setting out of range.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        templates: Sequence[str] | None = None,
        largest: int = 20,
        test_largest: int | None = None,
        reasoning: bool = True,
        calculator: bool = False,
        prompts: Sequence[str] | None = None,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        seed: int = 0,
    ) -> None:
        self.templates = tuple(TEMPLATES) if templates is None else tuple(templates)
        if not self.templates or set(self.templates) - set(TEMPLATES):
            raise ValueError(f"templates must be some of {', '.join(TEMPLATES)}, got {list(self.templates)!r}")
        for name, value in (("largest", largest), ("test_largest", test_largest or largest)):
            if not 5 <= value <= 10**6:
                raise ValueError(f"{name} must be 5 to 1000000, got {value}")
        self.size, self.split, self.seed = size, check_split(split), seed
        self.largest = test_largest or largest if split == "test" else largest
        self.reasoning, self.calculator = reasoning, calculator
        self.prompts = check_prompts(prompts or ("{question}",), "question")
        self.fractions = check_fractions(fractions)

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws a sample.

        Raises:
            ValueError: The settings leave no problem for this split.
        """
        rng = sample_rng(self.seed, self.split, key)
        for _ in range(TRIES):
            kind = self.templates[int(rng.integers(len(self.templates)))]
            draw = Draw(rng, self.largest)
            question, steps, value = TEMPLATES[kind](draw)
            if split_of(f"{kind} {draw.numbers}", self.seed, self.fractions) == self.split:
                break
        else:
            raise ValueError(
                f"no word problem was found for the {self.split} split in {TRIES} draws; raise largest "
                f"({self.largest}), or give it a larger share (fractions={self.fractions})"
            )
        lines = steps if self.calculator else [re.sub(r"<<[^>]*>>", "", line) for line in steps]
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if self.split == "train" else f"{self.split}-{key.index}",
            prompt=pick_prompt(self.prompts, rng).replace("{question}", question),
            answer="\n".join([*lines, f"#### {value}"]) if self.reasoning else str(value),
            meta={"task": "math", "kind": kind, "numeric": True},
        )
