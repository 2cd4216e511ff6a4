"""Sums of what micro-batches cost, and the counts that an optimizer step divides them by."""

from __future__ import annotations

from typing import NamedTuple

import torch
from lightning.pytorch.strategies import Strategy
from torch import Tensor

from smmd_lightning.types import LossOutput


class StepCounts(NamedTuple):
    """What one optimizer step divides by.

    Attributes:
        supervised: Supervised tokens of the whole step, over all processes, divided by the number of processes and
            by the number of micro-batches: the engine averages gradients over both.
        numeric: The same for numeric target tokens.
    """

    supervised: float
    numeric: float


class LossSums:
    """Sums of cross-entropy and numeric loss, and the positions that they are of, on this process.

    Attributes:
        supervised: Positions with cross-entropy.
        numeric: Positions with a numeric loss.
        ce_square: Squared norm of the cross-entropy's gradient, of the micro-batches that measured it.
        numeric_square: The same of the numeric loss.

    Example:
        >>> LossSums(ce=torch.tensor(6.0), numeric_loss=torch.tensor(1.0), supervised=3, numeric=2).means(0.5)
        {'loss': tensor(2.2500), 'ce': tensor(2.), 'numeric': tensor(0.5000)}
    """

    def __init__(
        self, ce: Tensor | float = 0.0, numeric_loss: Tensor | float = 0.0, supervised: int = 0, numeric: int = 0
    ) -> None:
        self.ce = ce
        self.numeric_loss = numeric_loss
        self.supervised = supervised
        self.numeric = numeric
        self.ce_square: Tensor | float = 0.0
        self.numeric_square: Tensor | float = 0.0

    def add(self, output: LossOutput) -> None:
        """Adds what one micro-batch gave."""
        self.ce = self.ce + _wide(output.metrics["ce_sum"])
        self.numeric_loss = self.numeric_loss + _wide(output.metrics["numeric_sum"])
        self.supervised += output.supervised
        self.numeric += output.numeric
        if output.squares is not None:
            ce_square, numeric_square = _wide(output.squares)
            self.ce_square = self.ce_square + ce_square
            self.numeric_square = self.numeric_square + numeric_square

    def means(self, loss_weight: float) -> dict[str, Tensor | float]:
        """Returns the means a position `ce` and `numeric` (0 where there is none), and `loss` of both together.

        Args:
            loss_weight: Lambda.
        """
        ce = self.ce / max(self.supervised, 1)
        numeric = self.numeric_loss / max(self.numeric, 1)
        return {"loss": ce + loss_weight * numeric, "ce": ce, "numeric": numeric}

    def reduce(self, strategy: Strategy, device: torch.device) -> LossSums:
        """Returns the sums over all processes; each must call this."""
        own = [self.ce, self.numeric_loss, self.ce_square, self.numeric_square, self.supervised, self.numeric]
        place = "cpu" if device.type == "mps" else device  # a single process there, and no float64
        total = strategy.reduce(
            torch.tensor([float(each) for each in own], dtype=torch.float64, device=place), reduce_op="sum"
        )
        ce, numeric_loss, ce_square, numeric_square, supervised, numeric = total.tolist()
        sums = LossSums(ce, numeric_loss, int(supervised), int(numeric))
        sums.ce_square, sums.numeric_square = ce_square, numeric_square
        return sums


class Window:
    """The open accumulation window of this process: its sums, and what its optimizer step divides by."""

    counts: StepCounts | None
    sums: LossSums
    micro_batches: int

    def __init__(self) -> None:
        self.open(None)

    def open(self, counts: StepCounts | None) -> None:
        """Starts a new window."""
        self.counts = counts
        self.sums = LossSums()
        self.micro_batches = 0

    def add(self, output: LossOutput) -> None:
        """Adds a micro-batch."""
        self.sums.add(output)
        self.micro_batches += 1


def _wide(sum_: Tensor) -> Tensor:
    return sum_ if sum_.device.type == "mps" else sum_.double()
