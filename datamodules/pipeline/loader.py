"""From sample keys to batches, in worker processes, with a position that can be saved.

Unusual: a loader's whole state is (epoch, micro-batch). Samples are functions of (seed, epoch, index), so nothing
inside the workers needs saving, and a plain `DataLoader` over lists of keys resumes exactly. The training loader reads
one accumulation window ahead and tells each micro-batch the supervised targets of the whole window, from which the
module takes the two counts that make the mean over an optimizer step exact.

Shape legend: S supervised positions of an accumulation window on this process, and one behind each run of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from datamodules.pipeline.bad_samples import BadSamples
from datamodules.pipeline.batch_builder import BatchBuilder
from datamodules.pipeline.fingerprint import fingerprint
from datamodules.pipeline.sampler import MicroBatchSampler
from datamodules.pipeline.shared_memory import Parcel
from smmd_lightning.compat.messages import is_error_inside_worker
from smmd_lightning.types import IGNORE_INDEX, Batch

SETTINGS = {"window": "trainer.accumulate_grad_batches", "seed": "data.seed (seed_everything)"}
"""What a run must keep from one epoch to the next, and how the user calls it."""

DEALING = {"batch_size": "data.batch_size", "world_size": "number of processes"}
"""What it must keep as well while an epoch is unfinished."""


class NumericLoader:
    """Iterable of batches with a length and a state; what Lightning gets as data loader.

    Args:
        builder: Makes a batch of a list of keys.
        sampler: Deals out the keys of this process.
        window: Micro-batches of one optimizer step (`accumulate_grad_batches`); 0 outside training.
        epoch_end: Micro-batches after which an epoch ends, its last window cut short there. None: all.
        num_workers: Worker processes.
        pin_memory: Whether batches are put into page-locked memory.
        max_bad_share: The run stops when more than this share of the split's samples could not be used in an epoch.
        named: What has been said about bad samples already; loaders of the same data share it. None: nothing.

    Attributes:
        seconds: How long the consumer has waited for its batches, all epochs together.

    Raises:
        RuntimeError: While iterating, when more samples could not be used than `max_bad_share` of the split.
    """

    def __init__(
        self,
        builder: BatchBuilder,
        sampler: MicroBatchSampler,
        *,
        window: int = 0,
        epoch_end: int | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        max_bad_share: float = 0.05,
        named: set[str] | None = None,
    ) -> None:
        self._builder = builder
        self._sampler = sampler
        self.window = window
        self._epoch_end = len(sampler) if epoch_end is None else epoch_end
        self._epoch = 0
        self._position = 0
        self.seconds = 0.0
        self._bad = BadSamples(builder.size, max_bad_share, set() if named is None else named)
        self._loader = DataLoader(
            builder,
            batch_size=None,
            sampler=sampler,
            num_workers=num_workers,
            pin_memory=pin_memory,
            persistent_workers=num_workers > 0,
        )

    def __len__(self) -> int:
        """Number of micro-batches of a whole epoch, wherever the loader stands and ends it."""
        return len(self._sampler)

    def __iter__(self) -> Iterator[Batch]:
        """Yields the rest of the epoch; the next call goes on with the next epoch."""
        if self._position >= self._epoch_end:
            self._epoch, self._position = self._epoch + 1, 0
        if not self.window:  # evaluation: always the whole split, always the same
            self._epoch, self._position = 0, 0
        self._bad.begin(self._epoch)
        self._sampler.epoch, self._sampler.start, self._sampler.end = self._epoch, self._position, self._epoch_end
        items = iter(self._loader)
        batches: Iterator[Batch] = (item.unpack() if isinstance(item, Parcel) else item for item in items)
        if self._loader.num_workers:
            batches = _one_ahead(_from_workers(batches))
        asked = time.perf_counter()
        while window := list(islice(batches, self.window or 1)):
            targets_S = torch.cat([_targets(batch) for batch in window]) if self.window else None
            for number, batch in enumerate(window, start=1):
                self._bad.note(batch)
                last = number == len(window)
                if last:  # a checkpoint is written while the consumer holds this very batch
                    self._position += len(window)
                self.seconds += time.perf_counter() - asked
                yield replace(batch, window_targets=targets_S, window_end=last)
                asked = time.perf_counter()

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._builder.source, self._builder.size)

    def state_dict(self) -> dict[str, Any]:
        """Returns epoch, position (micro-batches, at the last finished accumulation window) and what both rest on."""
        sampler = self._sampler
        settings: dict[str, Any] = {"window": self.window, "seed": sampler.seed}
        settings |= {"batch_size": sampler.batch_size, "world_size": sampler.world_size, "data": self._fingerprint}
        place = {"epoch": self._epoch, "position": self._position, "batches": len(self)}
        return {**place, **settings, "bad": self._bad.indices()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a saved position.

        Raises:
            ValueError: The epoch had another number of micro-batches or was dealt out otherwise, so the position means
                something else.
        """
        if state["batches"] != len(self):
            raise ValueError(
                f"The checkpoint was written with {state['batches']} micro-batches per epoch and process, now "
                f"there are {len(self)}: go on with the same data, batch_size, limit and number of processes, "
                "or start a new run."
            )
        own = self.state_dict()
        if state.get("data", own["data"]) != own["data"]:
            raise ValueError(
                "The checkpoint was written with other data: of the training samples looked at, questions or answers "
                "differ. Go on with the same files and data settings, or start a new run (another --run_dir)."
            )
        kept = SETTINGS | DEALING if state["position"] < self._epoch_end else SETTINGS
        # Checkpoints of earlier versions do not tell.
        differing = {name: called for name, called in kept.items() if state.get(name, own[name]) != own[name]}
        if differing:
            before, now = (
                ", ".join(f"{called}={of[name]}" for name, called in differing.items()) for of in (state, own)
            )
            raise ValueError(
                f"The checkpoint was written with {before}, now it is {now}: go on with the same settings, or start a "
                "new run."
            )
        self._epoch, self._position = state["epoch"], state["position"]
        self._bad.restore(self._epoch, state.get("bad", ()))


def _from_workers(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Says that a worker died where all that is seen of it is a connection that broke while it handed over a batch."""
    try:
        yield from batches
    except (EOFError, ConnectionError, FileNotFoundError) as error:
        if is_error_inside_worker(error):  # the error of a sample, sent by a worker that lives
            raise
        raise RuntimeError(f"DataLoader worker exited unexpectedly while it handed over a batch: {error!r}") from error


def _one_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Takes the next batch out of its worker in a thread, while the consumer computes with the last one."""
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch


def _targets(batch: Batch) -> torch.Tensor:
    """Returns the target ids that the shifted labels supervise, and `IGNORE_INDEX` behind each run of them, (S,)."""
    assert batch.labels is not None
    shifted = F.pad(batch.labels[:, 1:], (0, 1), value=IGNORE_INDEX).flatten()
    kept = shifted != IGNORE_INDEX
    kept[1:] |= kept[:-1].clone()
    return shifted[kept]
