"""Lambda by a ratio of gradients, so that one setting means the same for every loss, tokenizer and task.

    lambda = ratio * mean |grad CE| / mean |grad L|,   both at the hidden states of one optimizer step

The gradients are those with respect to the last hidden states at supervised positions: the one place through which both
losses reach the model. Both losses are means there, as they are in the step's loss. The means are over the first
optimizer steps that have numbers; lambda is 0 in these steps, and stays what it is after them.

One real example, on Qwen's digits, a numeric loss whose pull on the hidden states is a third of the cross-entropy's::

    model:
      loss_weight: auto
      weight_balance: {ratio: 0.3, steps: 20}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

LossWeight = float | Literal["auto"]
"""Lambda, or `auto`."""


@dataclass(frozen=True)
class WeightBalance:
    """How `loss_weight: auto` finds lambda.

    Attributes:
        ratio: What |lambda * grad L| / |grad CE| shall be, above 0.
        steps: Optimizer steps with numbers that are measured, at least 1.

    Raises:
        ValueError: A setting is out of its range.
    """

    ratio: float = 0.3
    steps: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.ratio < math.inf:
            raise ValueError(f"weight_balance: ratio must be a finite number above 0, got {self.ratio}.")
        if self.steps < 1:
            raise ValueError(f"weight_balance: steps must be at least 1, got {self.steps}.")


class MeasuredWeight:
    """What has been measured so far, and the lambda that follows from it.

    Args:
        balance: How lambda is found.

    Attributes:
        steps: Optimizer steps measured.
        ce: Sum of their norms of the cross-entropy's gradient.
        numeric: Sum of their norms of the numeric loss's gradient.

    Example:
        >>> weight = MeasuredWeight(WeightBalance(ratio=0.5, steps=2))
        >>> weight.add(ce_square=36.0, numeric_square=4.0, supervised=3, numeric=2)  # norms 6 / 3 and 2 / 2
        >>> weight.measuring, weight.value
        (True, 0.0)
        >>> weight.add(ce_square=16.0, numeric_square=9.0, supervised=1, numeric=3)  # norms 4 and 1
        >>> weight.measuring, weight.value
        (False, 1.5)
    """

    def __init__(self, balance: WeightBalance) -> None:
        self.balance = balance
        self.steps = 0
        self.ce = 0.0
        self.numeric = 0.0

    @property
    def measuring(self) -> bool:
        """Whether more steps must be measured."""
        return self.steps < self.balance.steps

    @property
    def value(self) -> float:
        """Lambda; 0 while it is being measured."""
        return 0.0 if self.measuring else self.balance.ratio * self.ce / self.numeric

    def add(self, ce_square: float, numeric_square: float, supervised: float, numeric: float) -> None:
        """Adds an optimizer step; one without numbers, or whose gradients are not finite, does not count.

        Args:
            ce_square: Squared norm of the gradient of the sum of cross-entropies, over all processes.
            numeric_square: The same of the numeric loss.
            supervised: Supervised tokens of the step, over all processes.
            numeric: Numeric target tokens of the step, over all processes.

        Raises:
            RuntimeError: The last step to measure is over, and the numeric loss had no gradient in any.
        """
        if not (supervised and numeric and math.isfinite(ce_square) and math.isfinite(numeric_square)):
            return
        self.steps += 1
        self.ce += math.sqrt(ce_square) / supervised
        self.numeric += math.sqrt(numeric_square) / numeric
        if not self.measuring and self.numeric == 0:
            raise RuntimeError(
                f"loss_weight: auto has measured {self.steps} steps, and the numeric loss had no gradient in any of "
                "them, so no weight gives it a share. Set loss_weight to a number, or look at the loss's settings."
            )

    def state_dict(self) -> dict[str, float]:
        """Returns what has been measured, for a checkpoint."""
        return {"steps": self.steps, "ce": self.ce, "numeric": self.numeric}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Takes over what has been measured; the settings stay those of this run."""
        self.steps, self.ce, self.numeric = int(state["steps"]), state["ce"], state["numeric"]


def gradient_squares(hidden_SD: Tensor, *sums: Tensor) -> Tensor:
    """Computes the squared norms of the gradients of some sums with respect to hidden states.

    Args:
        hidden_SD: (S, D) hidden states that the sums were computed from; the graph is kept.
        *sums: Scalars, one or more.

    Returns:
        (number of sums,) float32.

    Example:
        >>> hidden = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> gradient_squares(hidden, hidden.sum(), (hidden**2).sum()).round().tolist()
        [2.0, 20.0]
    """
    gradients = [torch.autograd.grad(each, hidden_SD, retain_graph=True)[0] for each in sums]
    return torch.stack([torch.linalg.vector_norm(each, dtype=torch.float32).square() for each in gradients])
