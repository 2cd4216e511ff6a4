"""From a list of sample keys to one batch, stand-ins for samples that cannot be used included."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import Dataset, get_worker_info

from datamodules.pipeline.collate import Collator, TooLong
from datamodules.pipeline.shared_memory import Parcel
from smmd_lightning.types import BadSample, Batch, NumericExample, SampleKey, Source


class BatchBuilder(Dataset["Batch | Parcel"]):
    """Indexed by a list of keys, gives their batch: reads or draws the samples and collates them.

    A sample that cannot be used is replaced by the next one of its split while training (the same on every machine),
    and by a row that does not count in evaluation, where a stand-in would be counted twice. Stand-ins are looked for
    from the split's start on every process, so where there is none, all processes get batches without rows together.

    Args:
        source: The split's samples.
        size: How many of them are in use; replacements stay among these.
        collator: Makes model inputs of examples.
        generation: Whether the batches are prompts to go on from, instead of prompts with answers.
        replace_bad: True in training, False in evaluation.
    """

    def __init__(
        self, source: Source, size: int, collator: Collator, *, generation: bool = False, replace_bad: bool = False
    ) -> None:
        self.source = source
        self.size = size
        self.collator = collator
        self.generation = generation
        self.replace_bad = replace_bad
        self._epoch = 0
        self._known_bad: set[int] = set()
        self._stand_in = 0

    def __getitem__(self, keys: list[SampleKey]) -> Batch | Parcel:
        """Returns the batch of the samples at `keys`; in a worker process, packed for the way.

        Raises:
            RuntimeError: In training, no sample of the split can be used.
        """
        batch = self.build(keys)
        return batch if get_worker_info() is None else Parcel.pack(batch)

    def build(self, keys: list[SampleKey]) -> Batch:
        """Returns the batch of the samples at `keys`; without any row where evaluation finds no usable sample.

        Raises:
            RuntimeError: In training, no sample of the split can be used.
        """
        if keys[0].epoch != self._epoch:  # drawn samples are new ones
            self._epoch, self._known_bad, self._stand_in = keys[0].epoch, set(), 0
        skipped: dict[int, str] = {}
        rows = [self._usable(key, skipped) for key in keys]
        while all(row is not None for row in rows):
            chosen = [row for row in rows if row is not None]
            try:
                batch = self.collator(
                    [example for example, _ in chosen], [key.counted for _, key in chosen], generation=self.generation
                )
            except TooLong as error:
                for row, reason in error.reasons.items():
                    self._mark(chosen[row][1].index, reason, skipped)
                for row in error.reasons:
                    rows[row] = self._usable(keys[row], skipped)
            else:
                batch.keys = [key for _, key in chosen]
                break
        else:
            batch = Batch(inputs={}, labels=None, examples=[], counted=[])
        batch.skipped, batch.bad = list(skipped.values()), list(skipped)
        return batch

    def _usable(self, key: SampleKey, skipped: dict[int, str]) -> tuple[NumericExample, SampleKey] | None:
        """Reads a sample, or the first usable one that may stand in for it; None where there is none."""
        for candidate in self._candidates(key):
            if candidate.index in self._known_bad:
                continue
            try:
                return self.source.example(candidate), candidate
            except BadSample as error:
                self._mark(candidate.index, str(error), skipped)
        if not self.replace_bad:
            return None
        raise RuntimeError(
            f"None of the {self.size} training samples can be used, the last one because: {list(skipped.values())[-1:]}"
            ". Look at the data files, or at max_length if the samples are too long."
        )

    def _candidates(self, key: SampleKey) -> Iterator[SampleKey]:
        yield key
        if self.replace_bad:
            for step in range(1, self.size):
                yield key._replace(index=(key.index + step) % self.size)
            return
        while self._stand_in < self.size:
            yield key._replace(index=self._stand_in, counted=False)
            if self._stand_in in self._known_bad:
                self._stand_in += 1

    def _mark(self, index: int, reason: str, skipped: dict[int, str]) -> None:
        self._known_bad.add(index)
        skipped[index] = reason
