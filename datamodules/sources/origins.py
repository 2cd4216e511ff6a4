"""Where a data module's samples come from: drawn, from files, or from the hub.

Each is one class: a dataclass of its settings, named in the YAML, that opens a split. A task subclasses these three and
says how a sample is drawn, or how rows are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from datamodules.sources.open_tables import read_hub
from datamodules.sources.splits import check_fractions, check_split, sample_rng
from datamodules.sources.tables import Table
from smmd_lightning.types import NumericExample, SampleKey, Source

Split = Literal["train", "val", "test"]
Fractions = tuple[float, float, float]
DrawSample = Callable[[np.random.Generator, SampleKey], NumericExample]
"""Draws one sample, whose id is set by the caller. It must be picklable for worker processes."""


@dataclass
class Samples(ABC):
    """Settings that say where samples come from."""

    @abstractmethod
    def open(self, split: Split, *, seed: int = 0, **task: Any) -> Source:
        """Returns the samples of a split.

        Args:
            split: Which.
            seed: The data module's seed.
            **task: What the task's data module adds for all its origins: `prompts`, `answer_format`, ….

        Raises:
            ValueError: The settings or files do not give such a split.
        """


@dataclass
class Drawn(Samples):
    """Samples drawn on the fly: training never sees the same one twice, validation and test never change.

    With `train_rows` training is limited data, as a table is: the same samples in every epoch. With `eval_seed` all
    runs, whatever their seed, are judged on the same samples.

    Attributes:
        train_size: Samples of one training epoch.
        val_size: Validation samples.
        test_size: Test samples.
        train_rows: Samples of one training epoch that come again in every other epoch, in the place of `train_size`.
            None: each epoch draws new ones.
        eval_seed: Seed of the validation and test samples, and of what is dealt to which split. None: the data
            module's.
    """

    train_size: int = 10_000
    val_size: int = 500
    test_size: int = 1_000
    train_rows: int | None = None
    eval_seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("train_size", "val_size", "test_size", "eval_seed"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative, got {value}")
        if self.train_rows is not None and self.train_rows < 1:
            raise ValueError(
                f"train_rows must be at least 1, or null for new samples each epoch, got {self.train_rows}"
            )

    @abstractmethod
    def drawing(self, split: Split, *, seed: int, **task: Any) -> DrawSample:
        """Returns what draws a sample of `split`; called once per split.

        Raises:
            ValueError: The settings leave nothing to draw.
        """

    def open(self, split: Split, *, seed: int = 0, **task: Any) -> DrawnSplit:
        """Returns the drawings of a split."""
        if seed < 0:
            raise ValueError(f"seed must not be negative, got {seed}")
        check_split(split)
        shared = seed if self.eval_seed is None else self.eval_seed
        draw = self.drawing(split, seed=shared, **task)
        if split != "train":
            return DrawnSplit(getattr(self, f"{split}_size"), split, shared, draw)
        if self.train_rows is None:
            return DrawnSplit(self.train_size, split, seed, draw)
        return DrawnSplit(self.train_rows, split, seed, draw, repeated=True)


@dataclass(frozen=True)
class DrawnSplit:
    """One split of drawn samples.

    Attributes:
        size: Samples of one pass.
        split: `train`, `val` or `test`.
        seed: Seed of all random choices.
        draw: Draws one sample.
        repeated: Whether every training epoch has the samples of the first.
    """

    size: int
    split: Split
    seed: int
    draw: DrawSample
    repeated: bool = False

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample: a function of (seed, split, epoch, index); outside training the epoch changes nothing."""
        if self.repeated:
            key = key._replace(epoch=0)
        example = self.draw(sample_rng(self.seed, self.split, key), key)
        place = f"{key.epoch}-{key.index}" if self.split == "train" else str(key.index)
        return replace(example, id=f"{self.split}-{place}")


@dataclass
class Files(Samples):
    """A file per split, or one that is divided.

    Attributes:
        train: File of the training split, and of the splits that have no file of their own.
        val: File of the validation split. None: part of `train`.
        test: File of the test split. None: part of `train`.
        fractions: Shares of train, val and test where `train` is divided; the share of a split with a file of its own
            stays with training.
        cache_dir: Where `datasets` keeps its copy of Parquet files. None: its own choice.
    """

    train: str
    val: str | None = None
    test: str | None = None
    fractions: Fractions = (0.8, 0.1, 0.1)
    cache_dir: str | None = None

    def __post_init__(self) -> None:
        check_fractions(self.fractions)

    @abstractmethod
    def rows(self, path: str, split: Split, *, fractions: Fractions | None, seed: int, **task: Any) -> Source:
        """Returns the rows of a file that belong to `split`: all of them where `fractions` is None."""

    def open(self, split: Split, *, seed: int = 0, **task: Any) -> Source:
        """Returns the rows of a split."""
        check_split(split)
        path, fractions = getattr(self, split), None
        divided = self.val is None or self.test is None
        if path is None or (split == "train" and divided):
            path, fractions = self.train, self._shares()
        return self.rows(path, split, fractions=fractions, seed=seed, **task)

    def _shares(self) -> Fractions:
        """What `train` is divided into: the share of a split with a file of its own falls to training."""
        train, val, test = self.fractions
        if self.val is not None:
            return train + val, 0.0, test
        return (train + test, val, 0.0) if self.test is not None else self.fractions


@dataclass
class Hub(Samples):
    """A data set on the Hugging Face hub, or a folder laid out like one.

    Attributes:
        name: `owner/name`, or a folder.
        train: What it calls the training split.
        val: What it calls the validation split; slices as in `train[90%:]` are allowed.
        test: What it calls the test split.
        config: Name of the configuration, where there are several.
        revision: Branch, tag or commit.
        cache_dir: Where `datasets` keeps its copy. None: its own choice.
    """

    name: str
    train: str = "train"
    val: str = "validation"
    test: str = "test"
    config: str | None = None
    revision: str | None = None
    cache_dir: str | None = None

    @abstractmethod
    def rows(self, table: Table, split: Split, *, seed: int, **task: Any) -> Source:
        """Returns the rows of a table as samples."""

    def open(self, split: Split, *, seed: int = 0, **task: Any) -> Source:
        """Returns the rows of a split."""
        table = read_hub(
            self.name,
            getattr(self, check_split(split)),
            config=self.config,
            revision=self.revision,
            cache_dir=self.cache_dir,
        )
        return self.rows(table, split, seed=seed, **task)
