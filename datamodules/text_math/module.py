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
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.sources.origins import Samples, Split
from datamodules.text_math.arithmetic import DrawnArithmetic
from smmd_lightning.types import Source


class TextMathDataModule(NumericDataModule):
    """Problems in words and figures, answered with a number.

    Args:
        processor: Folder or hub name of the model's tokenizer; linked to the backbone's path by the command line.
        problems: Where the problems come from. None: arithmetic, drawn.
        prompts: Wordings around the problem, with `{question}` (drawn arithmetic: `{expression}`) in them; one is
            chosen per sample. None: a plain one.
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
