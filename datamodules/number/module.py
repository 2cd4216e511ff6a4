"""Any picture or text with a number in it, from one file.

One real example; format and columns are recognised::

    smmd fit --data NumberDataModule --data.train my.jsonl --model.backbone VisionLanguageBackbone \
      --model.backbone.path Qwen/Qwen3-VL-4B-Instruct
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.number.tables import NumberColumns, NumberFiles
from datamodules.sources.images import ImageLimits
from datamodules.sources.origins import Fractions, Split
from smmd_lightning.types import Source


class NumberDataModule(NumericDataModule):
    """Questions with or without pictures, answered with a number; see `NumberFiles` for what a file may look like.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        train: File of the training split, and of the splits that have no file of their own.
        val: File of the validation split. None: part of `train`.
        test: File of the test split. None: part of `train`.
        fractions: Shares of train, val and test where `train` is divided.
        columns: What the columns are called. None: recognised, and said in the log.
        prompts: Wordings around the question, with `{question}` in them; one is chosen per sample. None: the question.
        limits: Largest and smallest picture.
        cache_dir: Where `datasets` keeps its copy of Parquet files. None: its own choice.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        train: str,
        val: str | None = None,
        test: str | None = None,
        fractions: Fractions = (0.8, 0.1, 0.1),
        columns: NumberColumns | None = None,
        prompts: Sequence[str] | None = None,
        limits: ImageLimits | None = None,
        cache_dir: str | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.numbers = NumberFiles(train, val, test, fractions, cache_dir, columns=columns, limits=limits)
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the rows of a split."""
        return self.numbers.open(split, seed=self.seed, prompts=self.prompts)
