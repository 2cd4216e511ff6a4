"""Several tasks in one run: text-only and image rows in one batch, metrics for each task.

One real example, in YAML: two charts for every word problem::

    data:
      class_path: datamodules.MixedDataModule
      init_args:
        train_size: 30000
        parts:
          - samples: {class_path: datamodules.DrawnCharts}
            weight: 2
          - samples: {class_path: datamodules.MathFiles, init_args: {train: gsm8k/train.jsonl, test: gsm8k/test.jsonl}}
            weight: 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datamodules.base import NumericDataModule
from datamodules.pipeline.sampler import epoch_order
from datamodules.sources.origins import Samples, Split
from smmd_lightning.types import NumericExample, SampleKey, Source


@dataclass
class Part:
    """One task of a mixture.

    Attributes:
        samples: Where its samples come from.
        weight: Its share of the training samples, beside the other parts' weights.
        settings: What its data module would add: `prompts`, `answer_format`.
    """

    samples: Samples
    weight: float = 1.0
    settings: dict[str, Any] = field(default_factory=dict)


class MixedSource:
    """Samples of several sources as one.

    In training each part fills its share of the epoch and goes through its own samples again and again, each time in
    another order, so none comes up more often than another of its part. In evaluation every sample of every part
    comes up once. The parts are interleaved evenly, so the first samples, which `limit` and `generation_limit` keep,
    hold every part by its share.

    Args:
        sources: The parts' samples of this split.
        counts: How many samples of each part make up an epoch.
        seed: Seed of the orders.
        training: Whether parts are repeated or cut to their count.
    """

    def __init__(self, sources: Sequence[Source], counts: Sequence[int], *, seed: int, training: bool) -> None:
        self.sources = list(sources)
        self.counts = list(counts)
        self.seed = seed
        self.training = training
        self._orders: dict[tuple[int, int], Any] = {}
        self._part, self._place = interleaved(self.counts)

    def __len__(self) -> int:
        """Samples of one epoch."""
        return sum(self.counts)

    def example(self, key: SampleKey) -> NumericExample:
        """Returns a sample; ids carry the number of their part, so that they stay unique."""
        part, place, epoch = int(self._part[key.index]), int(self._place[key.index]), 0
        if self.training:
            drawn = key.epoch * self.counts[part] + place
            epoch, place = divmod(drawn, len(self.sources[part]))
            place = self._order(part, epoch)[place]
        example = self.sources[part].example(SampleKey(epoch, int(place), key.counted))
        return replace(example, id=f"{part}:{example.id}")

    def _order(self, part: int, epoch: int) -> Any:
        if (part, epoch) not in self._orders:
            # An epoch of the mixture touches neighbouring passes through a part; older ones never come back.
            self._orders = {key: order for key, order in self._orders.items() if key[0] != part or key[1] >= epoch - 1}
            size = len(self.sources[part])
            self._orders[part, epoch] = epoch_order(size, seed=self.seed + part, epoch=epoch, shuffle=True)
        return self._orders[part, epoch]


def interleaved(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Spreads the samples of several parts evenly over one sequence.

    Args:
        counts: Samples of each part.

    Returns:
        The part of each position, and the sample's place in its part; both (sum of counts,) int64.

    >>> interleaved([4, 2])[0].tolist(), interleaved([4, 2])[1].tolist()
    ([0, 1, 0, 0, 1, 0], [0, 0, 1, 2, 1, 3])
    """
    parts = np.repeat(np.arange(len(counts)), counts)
    places = np.concatenate([np.arange(count) for count in counts])
    # The middle of a sample's stretch of the sequence, as a share of the sequence.
    order = np.argsort((2 * places + 1) / np.repeat(counts, counts), kind="stable")
    return parts[order], places[order]


class MixedDataModule(NumericDataModule):
    """A weighted mixture of tasks.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        parts: The tasks.
        train_size: Training samples of one epoch, over all parts. None: as many as the parts have together.
        **common: See `NumericDataModule`.

    Raises:
        ValueError: There is no part, or a weight is not above 0.
    """

    def __init__(self, processor: str, parts: list[Part], train_size: int | None = None, **common: Any) -> None:
        super().__init__(processor, **common)
        if not parts:
            raise ValueError("parts must name at least one task.")
        for part in parts:
            if not part.weight > 0:
                raise ValueError(f"Each part's weight must be above 0, got {part.weight}.")
        self.parts = parts
        self.train_size = train_size

    def source(self, split: Split) -> Source:
        """Returns the mixture for training, all samples of all parts for evaluation."""
        sources = [part.samples.open(split, seed=self.seed, **part.settings) for part in self.parts]
        sizes = [len(source) for source in sources]
        if split != "train":
            return MixedSource(sources, sizes, seed=self.seed, training=False)
        total = self.train_size or sum(sizes)
        weights = [part.weight for part in self.parts]
        # Cumulated shares, so that the counts add up to the total whatever the rounding.
        ends = [round(total * sum(weights[: number + 1]) / sum(weights)) for number in range(len(weights))]
        counts = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        return MixedSource(sources, counts, seed=self.seed, training=True)
