"""Where a data module's samples come from, as settings: drawn, from files, or from the hub.

Each task adds its own three by naming a reader and further fields; what files and hub data sets have in common stands
here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from smmd_lightning.types import Source

Split = Literal["train", "val", "test"]
Fractions = tuple[float, float, float]


@dataclass
class Samples(ABC):
    """Settings that say where samples come from."""

    reader: ClassVar[Callable[..., Source]]

    @abstractmethod
    def open(self, split: Split, **common: Any) -> Source:
        """Returns the samples of a split.

        Args:
            split: Which.
            **common: What the data module adds for all kinds: `seed`, `prompts`, ….
        """

    def _own(self, *passed: str) -> dict[str, Any]:
        """Settings that a task's class adds to those it inherits; the reader takes them by name."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in passed}


@dataclass
class Drawn(Samples):
    """Samples drawn on the fly: training never sees the same one twice, validation and test never change.

    Attributes:
        train_size: Samples of one training epoch.
        val_size: Validation samples.
        test_size: Test samples.
    """

    train_size: int = 10_000
    val_size: int = 500
    test_size: int = 1_000

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the drawings of a split."""
        size = getattr(self, f"{split}_size")
        return type(self).reader(size, split, **self._own("train_size", "val_size", "test_size"), **common)


@dataclass
class Files(Samples):
    """A file per split, or one that is divided.

    Attributes:
        train: File of the training split, and of the splits that have no file of their own.
        val: File of the validation split. None: part of `train`.
        test: File of the test split. None: part of `train`.
        fractions: Shares of train, val and test where `train` is divided; the share of a split with a file of its own
            stays with training.
        cache_dir: Where `datasets` keeps its copy. None: its own choice.
    """

    train: str
    val: str | None = None
    test: str | None = None
    fractions: Fractions = (0.8, 0.1, 0.1)
    cache_dir: str | None = None

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the rows of a split."""
        own = self._own("train", "val", "test", "fractions")
        path, fractions = getattr(self, split), None
        divided = self.val is None or self.test is None
        if path is None or (split == "train" and divided):
            path, fractions = self.train, self._shares()
        return type(self).reader(path, split, fractions=fractions, **own, **common)

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

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the rows of a split."""
        own = self._own("name", "train", "val", "test")
        return type(self).reader(self.name, split, hub_split=getattr(self, split), **own, **common)
