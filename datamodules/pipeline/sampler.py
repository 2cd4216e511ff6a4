"""Which samples make up which micro-batch of which process.

Unusual: the global order is dealt out in blocks of one micro-batch, rank by rank. So the samples of one optimizer step
are the same set whether a global batch of 8 is 1 process x 8, 2 processes x 4, or 2 processes x 2 x accumulation 2.
An epoch's tail is filled with copies marked `counted=False`; they carry no labels and enter no metric, so every
process makes the same number of steps and every sample counts exactly once.

With `lengths` the order is grouped: samples of like length share an optimizer step, so little is padding. Groups are
made inside pools of the shuffled order and then shuffled, so the order stays random, a function of (seed, epoch) alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from torch.utils.data import Sampler

from smmd_lightning.types import SampleKey


def epoch_order(size: int, *, seed: int, epoch: int, shuffle: bool) -> np.ndarray:
    """Returns the order of an epoch's samples, a function of (seed, epoch) alone.

    Args:
        size: Number of samples of the split.
        seed: The data module's seed.
        epoch: How often the data have been gone through before.
        shuffle: False gives the natural order in every epoch.

    Returns:
        (size,) int64 permutation of `range(size)`.
    """
    if not shuffle:
        return np.arange(size)
    return np.random.default_rng([seed, epoch]).permutation(size)


POOL_GROUPS = 50
"""How many groups are sorted by length together; more of them pad less and make the order less random."""


def grouped_order(order: np.ndarray, lengths: np.ndarray, group: int, *, seed: int, epoch: int) -> np.ndarray:
    """Brings samples of like length together.

    Args:
        order: (size,) the epoch's shuffled order.
        lengths: (size,) length of each sample, by its index.
        group: Samples of one optimizer step over all processes.
        seed: The data module's seed.
        epoch: How often the data have been gone through before.

    Returns:
        (size,) permutation of `order`: groups of `group` neighbours of a pool sorted by length, the groups shuffled.
        Inside a group the order stays sorted, so micro-batches of one step are of like length too. The epoch's
        incomplete group stays last.
    """
    pool = group * POOL_GROUPS
    pools = [order[start : start + pool] for start in range(0, len(order), pool)]
    ordered = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in pools])
    whole = len(order) // group
    shuffled = np.random.default_rng([seed, epoch, 1]).permutation(whole)
    return np.concatenate([ordered[: whole * group].reshape(whole, group)[shuffled].ravel(), ordered[whole * group :]])


class MicroBatchSampler(Sampler[list[SampleKey]]):
    """Yields the keys of one process's micro-batches of one epoch.

    Set `epoch`, `start` and `end` before iterating; the loader that owns this sampler keeps the first two in its state.

    Args:
        size: Number of samples of the split.
        batch_size: Rows of a micro-batch.
        rank: This process's number.
        world_size: Number of processes.
        seed: Seed of the order.
        shuffle: Whether each epoch has an order of its own.
        lengths: Gives the lengths (size,) of an epoch's samples, which then are grouped by it. None: not grouped.
        window: Micro-batches of one optimizer step; what is grouped is a whole step, whichever way it is cut up.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        *,
        rank: int = 0,
        world_size: int = 1,
        seed: int = 0,
        shuffle: bool = False,
        lengths: Callable[[int], np.ndarray] | None = None,
        window: int = 1,
    ) -> None:
        if size < 1:
            raise ValueError(f"A split needs at least one sample, got {size}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must lie in 0..{world_size - 1} (world size {world_size}), got {rank}.")
        self.size = size
        self.batch_size = batch_size
        self.rank = rank
        self.world_size = world_size
        self.seed = seed
        self.shuffle = shuffle
        self.lengths = lengths
        self.window = window
        self.epoch = 0
        self.start = 0
        self.end = len(self)

    def __len__(self) -> int:
        """Number of micro-batches of an epoch, the same on every process."""
        return math.ceil(self.size / (self.batch_size * self.world_size))

    def __iter__(self) -> Iterator[list[SampleKey]]:
        """Yields lists of `batch_size` keys, from micro-batch `start` to before `end`."""
        order = epoch_order(self.size, seed=self.seed, epoch=self.epoch, shuffle=self.shuffle)
        epoch = self.epoch
        if self.lengths is not None:
            group = self.batch_size * self.world_size * self.window
            order = grouped_order(order, self.lengths(epoch), group, seed=self.seed, epoch=epoch)
        for batch in range(self.start, self.end):
            first = (batch * self.world_size + self.rank) * self.batch_size
            places = range(first, first + self.batch_size)
            yield [SampleKey(epoch, int(order[place % self.size]), place < self.size) for place in places]
