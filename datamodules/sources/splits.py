"""Which split a sample belongs to, and where its randomness comes from: functions of (seed, name), no state.

One real example: `split_of("two_col_2139.png", 0, (0.8, 0.1, 0.1))` is `"train"` on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from smmd_lightning.types import SampleKey

SPLITS = ("train", "val", "test")


def check_split(split: str) -> str:
    """Returns `split`.

    Raises:
        ValueError: It is not one of `SPLITS`.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {SPLITS}, got {split!r}")
    return split


def check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Returns the shares of train, val and test.

    Raises:
        ValueError: They are not three non-negative numbers that add up to 1.
    """
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"fractions must be three shares (train, val, test) that add up to 1, got {fractions!r}")
    return fractions[0], fractions[1], fractions[2]


def split_of(name: str, seed: int, fractions: Sequence[float]) -> str:
    """Puts a sample into a split by a hash of its name, wherever in the file it stands.

    Args:
        name: What names the sample; those with one name are never parted.
        seed: Gives another partition.
        fractions: Shares of train, val and test.

    Returns:
        One of `SPLITS`.

    >>> [split_of(f"{i}.png", 0, (0.5, 0.25, 0.25)) for i in range(4)]
    ['train', 'val', 'test', 'test']
    """
    return SPLITS[int(deal([name], seed, fractions)[0])]


def deal(names: Iterable[str], seed: int, fractions: Sequence[float]) -> np.ndarray:
    """Puts many samples into splits, as `split_of` does one.

    Args:
        names: What names each sample.
        seed: Gives another partition.
        fractions: Shares of train, val and test.

    Returns:
        Place of each sample's split in `SPLITS`; (names,) int8.
    """
    train, val, _ = check_fractions(fractions)
    digests = b"".join(
        hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names
    )
    place = np.frombuffer(digests, dtype=">u8") / 2**64
    return np.searchsorted([train, train + val], place, side="right").astype(np.int8)


def sample_rng(seed: int, split: str, key: SampleKey, stream: int = 0) -> np.random.Generator:
    """Randomness of one sample: a function of (seed, epoch, index), whatever worker or rank asks.

    Args:
        seed: Seed of the run's data, not negative.
        split: One of `SPLITS`. Outside `train` the epoch is ignored, so that those samples never change.
        key: Which sample.
        stream: Tells independent uses for one sample apart.

    Returns:
        A fresh generator.
    """
    epoch = key.epoch if split == "train" else 0
    return np.random.default_rng([seed, SPLITS.index(split), epoch, key.index, stream])
