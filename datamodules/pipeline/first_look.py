"""What is learned from the samples of a split before a run, or an epoch, begins."""

from __future__ import annotations

import contextlib
from typing import Protocol

import numpy as np

from datamodules.pipeline.collate import Collator, TooLong
from datamodules.sources.origins import Split
from smmd_lightning.types import BadSample, NumericExample, SampleKey

LOOKED_AT = 8
"""Samples of a split that are tried before a run begins; of training, one must fit into `max_length`."""


class Splits(Protocol):
    """What a data module tells about its splits."""

    @property
    def collator(self) -> Collator:
        """Makes model inputs of examples."""
        ...

    def size(self, split: Split) -> int:
        """Returns the number of samples of `split` in use."""
        ...

    def example(self, split: Split, key: SampleKey) -> NumericExample:
        """Reads or draws one sample."""
        ...


def look_at_first_samples(data: Splits, split: Split) -> None:
    """Collates the first sample that can be used.

    Raises:
        ValueError: The split is the training split, and none of its first samples fits into `max_length`.
    """
    complaint = None
    for index in range(min(data.size(split), LOOKED_AT)):
        try:
            data.collator([data.example(split, SampleKey(0, index))], generation=split == "test")
        except TooLong as error:
            complaint = complaint or str(error)
        except BadSample:  # will be skipped and counted
            continue
        else:
            return
    if complaint is not None and split == "train":  # elsewhere such samples are skipped, up to max_bad_share
        raise ValueError(
            f"None of the first {LOOKED_AT} training samples fits: {complaint}. Raise max_length, or make images "
            f"cost fewer tokens (image_options, e.g. a lower max_pixels)."
        )


def questions_of_tasks(data: Splits, split: Split) -> dict[str, str]:
    """Returns the first question of each task among the first samples of `split`, by task."""
    prompts: dict[str, str] = {}
    for index in range(min(data.size(split), LOOKED_AT)):
        with contextlib.suppress(BadSample):
            example = data.example(split, SampleKey(0, index))
            prompts.setdefault(str(example.meta.get("task", "question")), example.prompt)
    return prompts


def characters_of_rows(data: Splits, epoch: int) -> np.ndarray:
    """Returns the characters of each training sample of an epoch, int64; 0 where it cannot be read.

    Raises:
        ValueError: A sample has an image.
    """
    lengths = np.zeros(data.size("train"), dtype=np.int64)
    for index in range(len(lengths)):
        try:
            example = data.example("train", SampleKey(epoch, index))
        except BadSample:  # will be replaced by its neighbour
            continue
        if example.images:
            raise ValueError(
                f"group_by_length=true is for text: sample {example.id} has an image, and all images would be read "
                "or drawn twice. Set group_by_length to false."
            )
        lengths[index] = len(example.prompt) + len(example.answer)
    return lengths
