"""Proper scores of distributions over numbers: CRPS, likelihood, central intervals.

Shape legend: N answers, V values of a distribution.

Unusual: a distribution is a row of values with their probabilities, in any order; values that do not belong to a row
have probability 0, and several places of one value are added up. Mass that an expansion left out may be missing: NLL
takes probabilities as they are, all else takes them as parts of what is there. A row without any mass is an answer
without a distribution. All arithmetic is float64.

One real example, a fair choice between 3 and 5 where 3 is right::

    >>> values, probs = torch.tensor([[3.0, 5.0]]), torch.tensor([[0.5, 0.5]])
    >>> crps(values, probs, torch.tensor([3.0])).item(), nll(values, probs, torch.tensor([3.0])).exp().item()
    (0.5, 2.0)
"""

from __future__ import annotations

import torch
from torch import Tensor

FACTORS = 16
"""Each probability may be a product of so many factors, each rounded, and a row's sum off by as much."""


def check_distributions(values_NV: Tensor, probs_NV: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both as float64, values sorted within each row.

    Raises:
        ValueError: Shapes differ, a probability is negative or not finite, a row's sum is above 1 by more than the
            rounding of its type, or a value with probability is not finite.
    """
    if values_NV.shape != probs_NV.shape or values_NV.ndim != 2:
        raise ValueError(
            f"values and probabilities must both be (N, V), got {tuple(values_NV.shape)} and {tuple(probs_NV.shape)}."
        )
    rounding = torch.finfo(probs_NV.dtype).eps * (probs_NV.shape[1] + FACTORS) if probs_NV.is_floating_point() else 0.0
    values_NV, probs_NV = values_NV.double(), probs_NV.double()
    if not bool(probs_NV.isfinite().all()) or bool((probs_NV < 0).any()):
        raise ValueError("probabilities must be finite and at least 0.")
    most = float(probs_NV.sum(1).max()) if len(probs_NV) else 0.0
    if most > 1 + rounding:
        raise ValueError(f"the probabilities of a row must sum to at most 1, got {most:.6g}.")
    values_NV = torch.where(probs_NV > 0, values_NV, 0.0)
    if not bool(values_NV.isfinite().all()):
        raise ValueError("values with a probability above 0 must be finite.")
    values_NV, order_NV = values_NV.sort(dim=1)
    return values_NV, probs_NV.gather(1, order_NV)


def crps(values_NV: Tensor, probs_NV: Tensor, truth_N: Tensor, period: float | None = None) -> Tensor:
    """Returns the continuous ranked probability score, E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007, eq. 21).

    Args:
        values_NV: (N, V) float, the values.
        probs_NV: (N, V) float, their probabilities; parts of their sum are what counts.
        truth_N: (N,) float, the right values.
        period: Length of a scale that closes on itself (720 for minutes on a dial): distances are the shorter way
            round, and time and memory go with V squared.

    Returns:
        (N,) float64, in the unit of the values; NaN for a row without mass.

    Raises:
        ValueError: See `check_distributions`.
    """
    values_NV, probs_NV = check_distributions(values_NV, probs_NV)
    mass_NV = probs_NV / probs_NV.sum(1, keepdim=True)
    truth_N = truth_N.double()
    off_NV = _apart(values_NV, truth_N[:, None], period)
    if period is not None:
        apart_NVV = _apart(values_NV[:, :, None], values_NV[:, None, :], period)
        spread_N = torch.einsum("nv,nw,nvw->n", mass_NV, mass_NV, apart_NVV)
    else:
        # E|X - X'| is twice the integral of F (1 - F), a sum over the gaps between neighbours.
        below_NV = mass_NV.cumsum(1)[:, :-1]
        spread_N = 2 * (below_NV * (1 - below_NV) * values_NV.diff(dim=1)).sum(1)
    return (mass_NV * off_NV).sum(1) - spread_N / 2


def nll(values_NV: Tensor, probs_NV: Tensor, truth_N: Tensor) -> Tensor:
    """Returns -log of the probability of the right value, (N,) float64; infinite where it has none.

    Args:
        values_NV: (N, V) float, the values.
        probs_NV: (N, V) float, their probabilities, taken as they are.
        truth_N: (N,) float, the right values; equal in float64 to the value they mean.

    Raises:
        ValueError: See `check_distributions`.
    """
    values_NV, probs_NV = check_distributions(values_NV, probs_NV)
    hit_N = torch.where(values_NV == truth_N.double()[:, None], probs_NV, 0.0).sum(1)
    return -hit_N.clamp(max=1.0).log()


def quantile(values_NV: Tensor, probs_NV: Tensor, level: float) -> Tensor:
    """Returns the least value up to which at least `level` of the mass lies, (N,) float64; NaN without mass.

    Raises:
        ValueError: `level` lies outside 0 to 1; see also `check_distributions`.
    """
    if not 0 <= level <= 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    values_NV, probs_NV = check_distributions(values_NV, probs_NV)
    total_N = probs_NV.sum(1)
    below_NV = probs_NV.cumsum(1) / total_N[:, None]
    reached_NV = (below_NV >= level - 1e-12) & (probs_NV > 0)
    place_N = reached_NV.to(torch.uint8).argmax(1)
    found_N = values_NV.gather(1, place_N[:, None])[:, 0]
    return torch.where(total_N > 0, found_N, torch.nan)


def central_interval(values_NV: Tensor, probs_NV: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Returns lower and upper end of the central interval that holds `level` of the mass, both (N,) float64.

    Raises:
        ValueError: See `quantile`.
    """
    return quantile(values_NV, probs_NV, (1 - level) / 2), quantile(values_NV, probs_NV, (1 + level) / 2)


def expected_value(values_NV: Tensor, probs_NV: Tensor) -> Tensor:
    """Returns the mean of each distribution, (N,) float64; NaN without mass.

    Raises:
        ValueError: See `check_distributions`.
    """
    values_NV, probs_NV = check_distributions(values_NV, probs_NV)
    return (values_NV * probs_NV).sum(1) / probs_NV.sum(1)


def penalised_mae(errors_N: Tensor, penalty_N: Tensor) -> Tensor:
    """Returns the mean absolute error in which an answer without a value costs its penalty.

    Args:
        errors_N: (N,) float, differences from the truth; NaN where there was no answer.
        penalty_N: (N,) float, what no answer costs.

    >>> penalised_mae(torch.tensor([1.0, float("nan")]), torch.tensor([10.0, 10.0])).item()
    5.5
    """
    return torch.where(errors_N.isnan(), penalty_N.double(), errors_N.double().abs()).mean()


def _apart(first: Tensor, second: Tensor, period: float | None) -> Tensor:
    off = (first - second).abs()
    if period is None:
        return off
    off = off % period
    return torch.minimum(off, period - off)
