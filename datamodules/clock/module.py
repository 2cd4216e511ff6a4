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
from dataclasses import dataclass, field
from typing import Any, Literal

from datamodules.base import NumericDataModule
from datamodules.clock.face_spec import FaceRanges
from datamodules.clock.tables import AnswerFormat, ClockColumns, FileClocks, HubClocks, SyntheticClocks
from datamodules.sources.images import ImageLimits
from datamodules.sources.origins import Drawn, Files, Fractions, Hub, Samples, Split
from smmd_lightning.types import Source


@dataclass
class DrawnClocks(Drawn):
    """Faces drawn on the fly.

    Attributes:
        style: `plain` (clean round dials) or `varied` (all there is).
        ranges: What faces look like, instead of the style's ranges.
        image_size: Side of the picture in pixels.
        minute_step: Only every so manieth minute of the hour occurs.
        unseen_times: Whether validation and test ask for times of day that training never shows.
        fractions: Shares of the times of day that train, val and test get, where `unseen_times`.
    """

    reader = SyntheticClocks
    style: Literal["plain", "varied"] = "varied"
    ranges: FaceRanges | None = None
    image_size: int = 224
    minute_step: int = 1
    unseen_times: bool = True
    fractions: Fractions = (0.8, 0.1, 0.1)


@dataclass
class ClockFiles(Files):
    """A JSONL, CSV or Parquet file, with the pictures beside it.

    Attributes:
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    reader = FileClocks
    columns: ClockColumns = field(default_factory=ClockColumns)
    limits: ImageLimits = field(default_factory=ImageLimits)


@dataclass
class ClockHub(Hub):
    """A data set on the Hugging Face hub.

    Attributes:
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    reader = HubClocks
    columns: ClockColumns = field(default_factory=ClockColumns)
    limits: ImageLimits = field(default_factory=ImageLimits)


class ClockDataModule(NumericDataModule):
    """Clocks to read, answered as a time of day on a 12-hour dial.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        clocks: Where the clocks come from. None: drawn, varied.
        answer_format: `HH:MM` or `HH:MM:SS`.
        prompts: Wordings of the question; one is chosen a sample. None: a plain question.
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
