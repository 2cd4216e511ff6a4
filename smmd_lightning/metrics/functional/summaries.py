"""Mean and median of one column, as all metrics take them."""

from __future__ import annotations

from torch import Tensor


def mean(values_N: Tensor) -> Tensor:
    """Returns the mean in float32; NaN of nothing."""
    return values_N.float().mean()


def median(values_N: Tensor) -> Tensor:
    """Returns the median, the mean of the middle two for an even number; NaN of nothing, infinity allowed.

    `torch.median` takes the lower of the middle two, and `torch.quantile` makes NaN of two infinities.

    >>> import torch
    >>> median(torch.tensor([3.0, 1.0, float("inf"), 2.0])).item()
    2.5
    """
    number = len(values_N)
    if not number:
        return values_N.new_tensor(float("nan"))
    ordered_N = values_N.float().sort().values
    return (ordered_N[(number - 1) // 2] + ordered_N[number // 2]) / 2
