"""Drawn scenes with short questions, to align the projector of a model that `smmd-join` made.

One real example, in YAML::

    data:
      class_path: datamodules.CaptionDataModule
      init_args:
        batch_size: 16
        captions:
          class_path: datamodules.DrawnCaptions
          init_args: {image_size: 112, kinds: [colour, count, where]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.captions.drawn import DrawnCaptions
from datamodules.sources.origins import Samples, Split
from smmd_lightning.types import Source


class CaptionDataModule(NumericDataModule):
    """Short questions about drawn scenes.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        captions: Where the scenes come from. None: drawn, all kinds.
        prompts: Wordings around the question, with `{question}` in them; one is chosen per sample. None: a plain one.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        captions: Samples | None = None,
        prompts: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.captions = captions or DrawnCaptions()
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the samples of a split."""
        return self.captions.open(split, seed=self.seed, prompts=self.prompts)
