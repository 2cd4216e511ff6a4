"""Clocks: drawn on the fly, from files, or from the hub.

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

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from datamodules.base import NumericDataModule, Split
from datamodules.clock_sources import AnswerFormat, ClockColumns, FileClocks, HubClocks, SyntheticClocks
from smmd_lightning.types import Source

FRACTIONS = (0.8, 0.1, 0.1)


@dataclass
class Clocks(ABC):
    """Where clocks come from."""

    @abstractmethod
    def open(self, split: Split, **common: Any) -> Source:
        """Returns the samples of a split; `common` are the settings that all kinds share."""


@dataclass
class DrawnClocks(Clocks):
    """Faces drawn on the fly; training never sees the same drawing twice.

    Attributes:
        train_size: Drawings of one training epoch.
        val_size: Validation drawings.
        test_size: Test drawings.
        style: `plain` (clean round dials) or `varied` (all there is).
        image_size: Side of the picture in pixels.
        minute_step: Only every so manieth minute of the hour occurs.
        unseen_times: Whether validation and test ask for times of day that training never shows.
        fractions: Shares of the times of day that train, val and test get, where `unseen_times`.
    """

    train_size: int = 10_000
    val_size: int = 500
    test_size: int = 1_000
    style: Literal["plain", "varied"] = "varied"
    image_size: int = 224
    minute_step: int = 1
    unseen_times: bool = True
    fractions: tuple[float, float, float] = FRACTIONS

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the drawings of a split."""
        return SyntheticClocks(
            getattr(self, f"{split}_size"),
            split,
            style=self.style,
            image_size=self.image_size,
            minute_step=self.minute_step,
            unseen_times=self.unseen_times,
            fractions=self.fractions,
            **common,
        )


@dataclass
class ClockFiles(Clocks):
    """A JSONL, CSV or Parquet file per split, with the pictures beside it.

    Attributes:
        train: File of the training split; of all three where the others are not given.
        val: File of the validation split.
        test: File of the test split.
        fractions: Shares of train, val and test where one file holds all.
        columns: What the columns are called.
        cache_dir: Where `datasets` keeps its copy. None: its own choice.
    """

    train: str
    val: str | None = None
    test: str | None = None
    fractions: tuple[float, float, float] = FRACTIONS
    columns: ClockColumns = field(default_factory=ClockColumns)
    cache_dir: str | None = None

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the rows of a split.

        Raises:
            ValueError: Only one of `val` and `test` is given, so it is not clear what the other should be.
        """
        if (self.val is None) != (self.test is None):
            raise ValueError("ClockFiles: give both val and test, or neither (then `train` is divided by `fractions`).")
        whole = self.val is None
        path = self.train if whole else getattr(self, split)
        return FileClocks(
            path,
            split,
            columns=self.columns,
            fractions=self.fractions if whole else None,
            cache_dir=self.cache_dir,
            **common,
        )


@dataclass
class ClockHub(Clocks):
    """A data set on the Hugging Face hub.

    Attributes:
        name: `owner/name`, or a folder laid out like a data set.
        train: What it calls the training split.
        val: What it calls the validation split.
        test: What it calls the test split.
        config: Name of the configuration, where there are several.
        revision: Branch, tag or commit.
        columns: What the columns are called.
    """

    name: str
    train: str = "train"
    val: str = "validation"
    test: str = "test"
    config: str | None = None
    revision: str | None = None
    columns: ClockColumns = field(default_factory=ClockColumns)

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the rows of a split."""
        return HubClocks(
            self.name,
            split,
            hub_split=getattr(self, split),
            config=self.config,
            revision=self.revision,
            columns=self.columns,
            **common,
        )


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
        clocks: Clocks | None = None,
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
