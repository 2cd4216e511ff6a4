"""Cheap random choices for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


class Dice:
    """One block of random numbers, used up in order and refilled when empty.

    Single calls to a numpy generator cost more than drawing a line.

    Args:
        rng: Where the randomness comes from; it is advanced by whole blocks.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._values = iter(rng.random(96).tolist())

    def uniform(self) -> float:
        """Returns a number from 0 to 1, 1 excluded."""
        value = next(self._values, None)
        if value is None:
            self._values = iter(self._rng.random(96).tolist())
            return next(self._values)
        return value

    def chance(self, share: float) -> bool:
        """Returns True in `share` of the cases."""
        return self.uniform() < share

    def between(self, low: float, high: float) -> float:
        """Returns a number from `low` to `high`."""
        return low + (high - low) * self.uniform()

    def whole(self, low: int, high: int) -> int:
        """Returns a whole number from `low` to `high`, both included."""
        return low + int(self.uniform() * (high - low + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        """Returns one of the items, each equally likely."""
        return items[int(self.uniform() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Returns the items in random order."""
        return [item for _, item in sorted(((self.uniform(), item) for item in items), key=lambda pair: pair[0])]
