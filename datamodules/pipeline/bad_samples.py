"""Samples of a split that could not be used: each named once, and the run ended when they are too large a share.

What is unusual: the share is that of the whole split, told over distinct samples and over all processes together, so it
does not depend on their number, nor on the order of samples or on stops and resuming.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable

from smmd_lightning.compat.of_torch import shared_store
from smmd_lightning.types import Batch

log = logging.getLogger(__name__)

FEWEST = 20
"""In a split of fewer samples one bad file would be a large share."""

_numbers = itertools.count()


class BadSamples:
    """What a loader has found, and the loaders of other processes beside it.

    All processes make their loaders in the same order, which tells whose findings belong together.

    Args:
        size: Samples of the split.
        share: `max_bad_share`.
        named: What has been said already; loaders of the same data share it.
    """

    def __init__(self, size: int, share: float, named: set[str]) -> None:
        self.size = size
        self.share = share
        self._named = named
        self._number = next(_numbers)
        self._epoch = 0
        self._reasons: dict[int, str] = {}
        self._read = 0

    def indices(self) -> list[int]:
        """Returns the indices of the bad samples of this epoch, those that other processes have found among them."""
        self._exchange({})
        return sorted(self._reasons)

    def restore(self, epoch: int, indices: Iterable[int]) -> None:
        """Takes over what was known when a checkpoint was written."""
        self.begin(epoch)
        self._reasons = dict.fromkeys(indices, "") | self._reasons

    def begin(self, epoch: int) -> None:
        """Forgets the samples of another epoch: those that are drawn or mixed have the same indices and are others."""
        if epoch != self._epoch:
            self._epoch, self._reasons, self._read = epoch, {}, 0

    def note(self, batch: Batch) -> None:
        """Takes note of the bad samples that were found while a batch was made.

        Raises:
            RuntimeError: They are more than the share that is allowed.
        """
        found = dict(zip(batch.bad, batch.skipped, strict=True))
        for reason in found.values():
            if reason not in self._named:
                self._named.add(reason)
                log.warning("Sample skipped: %s", reason)
        new = {index: reason for index, reason in found.items() if index not in self._reasons}
        self._reasons |= found
        if new:
            self._exchange(new)
        if len(self._reasons) > self.share * max(self.size, FEWEST):
            listed = "\n  ".join([reason for reason in self._reasons.values() if reason][:20])
            raise RuntimeError(
                f"{len(self._reasons)} of {self.size} samples could not be used, more than "
                f"max_bad_share={self.share} allows:\n  {listed}\nMend the data, or raise max_bad_share."
            )

    def _exchange(self, new: dict[int, str]) -> None:
        """Tells the other processes what was found here, and hears what they have found; nobody waits for anybody."""
        store = shared_store()
        if store is None:
            return
        place = f"bad_samples/{self._number}/{self.size}/{self._epoch}"
        for index, reason in new.items():
            store.set(f"{place}/{store.add(place, 1)}", json.dumps([index, reason]))
        for number in range(self._read + 1, store.add(place, 0) + 1):
            index, reason = json.loads(store.get(f"{place}/{number}"))
            self._reasons.setdefault(index, reason)
            self._read = number
