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
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from datamodules.sources.origins import Drawn, DrawSample, Fractions, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from datamodules.sources.splits import check_fractions, split_of
from datamodules.text_math.word_templates import TEMPLATES, Draw
from smmd_lightning.types import NumericExample, SampleKey

TRIES = 2000
"""Draws for one sample; a split that none of them meets is empty for all purposes."""


@dataclass
class DrawnWordProblems(Drawn):
    """Word problems drawn from templates on the fly, with their solutions.

    Attributes:
        templates: Names of the templates in use. None: all of `TEMPLATES`.
        largest: Largest of the numbers that a story draws freely.
        test_largest: The same for the test split, to ask beyond training. None: as in training.
        reasoning: Whether the answer shows its steps and ends in `#### result`; without it only the result.
        calculator: Whether steps carry GSM8K's calculator marks.
        fractions: Shares of the problems that train, val and test get.

    Raises:
        ValueError: An unknown template, or a setting out of range.
    """

    templates: Sequence[str] | None = None
    largest: int = 20
    test_largest: int | None = None
    reasoning: bool = True
    calculator: bool = False
    fractions: Fractions = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.templates is not None and (not self.templates or set(self.templates) - set(TEMPLATES)):
            raise ValueError(f"templates must be some of {', '.join(TEMPLATES)}, got {list(self.templates)!r}")
        for name, value in (("largest", self.largest), ("test_largest", self.test_largest or self.largest)):
            if not 5 <= value <= 10**6:
                raise ValueError(f"{name} must be 5 to 1000000, got {value}")
        check_fractions(self.fractions)

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws a problem."""
        wordings = check_prompts(prompts or ("{question}",), "question")
        return partial(self._draw, split=split, seed=seed, prompts=wordings)

    def _draw(
        self, rng: np.random.Generator, key: SampleKey, *, split: Split, seed: int, prompts: Sequence[str]
    ) -> NumericExample:
        templates = tuple(TEMPLATES if self.templates is None else self.templates)
        largest = self.test_largest or self.largest if split == "test" else self.largest
        for _ in range(TRIES):
            kind = templates[int(rng.integers(len(templates)))]
            draw = Draw(rng, largest)
            question, steps, value = TEMPLATES[kind](draw)
            if split_of(f"{kind} {draw.numbers}", seed, self.fractions) == split:
                break
        else:
            raise ValueError(
                f"no word problem was found for the {split} split in {TRIES} draws; raise largest "
                f"({largest}), or give it a larger share (fractions={self.fractions})"
            )
        lines = steps if self.calculator else [re.sub(r"<<[^>]*>>", "", line) for line in steps]
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng).replace("{question}", question),
            answer="\n".join([*lines, f"#### {value}"]) if self.reasoning else str(value),
            meta={"task": "math", "kind": kind, "numeric": True},
        )
