"""The few types that everything else speaks in; nothing here imports torch's heavier neighbours.

Shape legend: B rows of a micro-batch, T positions of a row, S supervised positions of an accumulation window.

One real example, as the clock data module yields it::

    NumericExample(id="train-0-17", prompt="What time does this clock show? Answer as HH:MM.",
                   answer="03:05", images=(<PIL.Image 224x224>,), meta={"task": "clock", "hour": 3})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from torch import Tensor

IGNORE_INDEX = -100
"""Label of a position that is not supervised (the value torch's cross-entropy skips)."""


class BadSample(ValueError):
    """A sample that cannot be used; the message names file and reason. Data modules skip and count it."""


class SampleKey(NamedTuple):
    """What a sampler yields and a data set is indexed by: a sample is a function of (seed, epoch, index).

    Attributes:
        epoch: How often the data have been gone through before this pass.
        index: Position of the sample in its split.
        counted: False for a copy that only fills up a rank's last batch; it is left out of metrics and files.
    """

    epoch: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    counted: bool = True


@dataclass  # not frozen: Lightning's half precision looks for tensors in a batch by setting fields of copies
class NumericExample:
    """One question with its right answer.

    Attributes:
        id: Names the sample in predictions, logs and error messages; unique within a split.
        prompt: The user's question, plain text without chat markup.
        answer: The right answer as the model should write it.
        images: Pillow images (RGB, upright) that stand before the question, in order; empty for text.
        meta: Plain facts for metrics and reports: `task`, and whatever a data module adds (`hour`, `kind`, …).
    """

    id: str
    prompt: str
    answer: str
    images: tuple[Image, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """The samples of one split of a task: what a data module reads or draws."""

    def __len__(self) -> int:
        """Number of samples of one pass."""
        ...

    def example(self, key: SampleKey) -> NumericExample:
        """Returns the sample at `key.index`, drawn for `key.epoch` where it is synthetic.

        Raises:
            BadSample: The sample cannot be used; it will be skipped and counted.
        """
        ...


@dataclass
class Batch:
    """One micro-batch, ready for the model.

    Attributes:
        inputs: Keyword arguments of the model's forward or generate: `input_ids` (B, T), `attention_mask`
            (B, T), and what the model's processor adds (`pixel_values`, `image_grid_thw`, …).
        labels: (B, T) token ids, `IGNORE_INDEX` where a position is not supervised; aligned with `input_ids`
            (the objective shifts). None when the batch is made for generation.
        examples: The B examples the rows were made from, their images dropped. Empty, with no inputs and no labels,
            where evaluation found no usable sample.
        counted: One flag per row; False for copies that only fill up a rank's last batch.
        stop_ids: Ids of the tokens that end an answer, as the labels have them; generation stops there.
        skipped: One line for each sample that was found unusable while this batch was made, with the reason.
        bad: Their indices in the split.
        window_targets: (S,) the supervised target ids of the whole accumulation window this batch is part of,
            on this process, and `IGNORE_INDEX` behind each answer. None outside training.
        window_end: Whether this is the last micro-batch of its accumulation window.
        keys: The B keys the rows were read by, so that a sample can be looked at again; empty where not told.
    """

    inputs: dict[str, Tensor]
    labels: Tensor | None
    examples: list[NumericExample]
    counted: list[bool]
    stop_ids: list[int] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    window_targets: Tensor | None = None
    window_end: bool = True
    keys: list[SampleKey] = field(default_factory=list)

    def __len__(self) -> int:
        """Number of rows, fillers included."""
        return len(self.examples)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """Returns the batch with its tensors on `device`."""
        return self.map_tensors(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """Returns the batch with its tensors in page-locked memory, from where copies to a GPU overlap."""
        return self.map_tensors(lambda tensor: tensor.pin_memory())

    def map_tensors(self, move: Callable[[Tensor], Tensor]) -> Batch:
        """Returns the batch with each of its tensors replaced, always in the same order.

        Args:
            move: Called with each tensor.
        """
        return replace(
            self,
            inputs={name: move(tensor) for name, tensor in self.inputs.items()},
            labels=None if self.labels is None else move(self.labels),
            window_targets=None if self.window_targets is None else move(self.window_targets),
        )


@dataclass(frozen=True)
class VocabularyOptions:
    """Which tokens count as numbers; see `NumericVocabulary.from_tokenizer`.

    Attributes:
        largest: Largest value.
        single_digits: Whether only "0" to "9" count, also where longer numbers are single tokens.
        leading_zeros: Whether "00" and "007" count, by their value.
        decimals: Whether tokens such as "0.5" count.
    """

    largest: int = 999
    single_digits: bool = False
    leading_zeros: bool = False
    decimals: bool = False


@dataclass
class LossOutput:
    """What the objective returns for one micro-batch.

    Attributes:
        loss: Scalar float32, joined to the graph, what `backward` is called on.
        metrics: Detached scalars to log, by short name (`ce`, `numeric`, …).
        supervised: Number of supervised tokens in the micro-batch.
        numeric: Number of numeric target tokens in the micro-batch.
        squares: (2,) float32 squared norms, at the hidden states, of the gradients of the sums of both losses; None
            where they were not measured.
    """

    loss: Tensor
    metrics: dict[str, Tensor]
    supervised: int
    numeric: int
    squares: Tensor | None = None
