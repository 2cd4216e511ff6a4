"""Clocks to read: drawn on the fly, from files, or from the hub.

One real example, in YAML::

    data:
      class_path: datamodules.ClockDataModule
      init_args:
        batch_size: 16
        clocks:
          class_path: datamodules.ClockFiles
          init_args: {train: clocks/labels.jsonl}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.clock.drawn import DrawnClocks
from datamodules.clock.times import AnswerFormat
from datamodules.sources.origins import Samples, Split
from smmd_lightning.types import Source


class ClockDataModule(NumericDataModule):
    """Clocks to read, answered as a time of day on a 12-hour dial.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        clocks: Where the clocks come from. None: drawn, varied.
        answer_format: `HH:MM` or `HH:MM:SS`.
        prompts: Wordings of the question; one is chosen per sample. None: a plain question.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        clocks: Samples | None = None,
        answer_format: AnswerFormat = "HH:MM",
        prompts: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.clocks = clocks or DrawnClocks()
        self.answer_format = answer_format
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the samples of a split."""
        return self.clocks.open(split, seed=self.seed, answer_format=self.answer_format, prompts=self.prompts)
