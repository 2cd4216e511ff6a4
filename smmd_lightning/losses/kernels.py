"""Kernels over the values of numeric tokens, and the graph they span: tensors in, tensors out.

Unusual: everything is computed in the dtype of `values_N` (float64 in a vocabulary) and rounded only by the
    caller.

Shape legend: N numeric tokens, M different values among them (bare and space-prefixed "7" are two tokens,
one value).

One real example, the ten digits with the published settings (squashing is the identity there)::

    kernel_NN = average_kernel(squash(pairwise_distances(values_N), 9.0), gaussian, (2.0,))

Source: Zuo et al., "Enhancing Numerical Prediction in LLMs via Smooth MMD Alignment", ICML 2026, arXiv
    2606.27731.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from smmd_lightning.losses.limits import LARGEST, check_number

Distance = Literal["absolute", "log", "circular"]
RADEMACHER_FEATURES = 64
"""Signs that a value-agnostic feature vector has: many enough that clamping negative products away keeps
the kernel positive definite (by its diagonal) up to some thousand values."""


def pairwise_distances(values_N: Tensor, distance: Distance = "absolute", period: float | None = None) -> Tensor:
    """Distances between all values.

    Args:
        values_N: (N,) floating values.
        distance: `absolute`: |a - b|. `log`: |log(1 + a) - log(1 + b)|, for values over many orders of
            magnitude. `circular`: the shorter way round a dial of `period` units, which makes 59 and 0
            neighbours.
        period: Length of the dial in units of the values; for `circular` only.

    Returns:
        (N, N) symmetric, zero on the diagonal and between equal values.

    Raises:
        ValueError: `log` with a value of -1 or less, or `circular` without a period longer than the values' span.

    Example:
        >>> pairwise_distances(torch.tensor([0.0, 30.0, 59.0]), "circular", period=60)[0].tolist()
        [0.0, 30.0, 1.0]
    """
    if distance == "log" and (values_N <= -1).any():
        raise ValueError(
            f"distance='log' compares log(1 + value), so all values must be above -1; got {values_N.min():g}."
        )
    values_N = values_N.log1p() if distance == "log" else values_N
    distances_NN = (values_N[:, None] - values_N[None, :]).abs()
    if distance == "circular":
        if period is None:
            raise ValueError("distance='circular' needs a period, e.g. 60 for minutes; got None.")
        span = float(values_N.max() - values_N.min())
        if not span < period:
            raise ValueError(
                f"period={period:g} would make different values equal: the numeric tokens are worth "
                f"{values_N.min():g} to {values_N.max():g}, which must lie less than one period apart. Set a longer "
                "period, or vocabulary.largest below it."
            )
        distances_NN = distances_NN.remainder(period)
        distances_NN = torch.minimum(distances_NN, period - distances_NN)
    return distances_NN


def squash(distances_NN: Tensor, factor: float | None) -> Tensor:
    """Rescale affinely so that the smallest distance becomes 1 and the largest `factor`; zeros stay zero.

    Args:
        distances_NN: (N, N) distances.
        factor: What the largest becomes; None or 0 leaves the distances as they are.

    Returns:
        (N, N). Where all distances are equal they become 1.
    """
    if not factor:
        return distances_NN
    apart_NN = distances_NN > 0
    smallest, largest = distances_NN[apart_NN].aminmax()
    slope = (factor - 1) / (largest - smallest) if largest > smallest else 0.0
    return torch.where(apart_NN, 1 + (distances_NN - smallest) * slope, 0.0)


def checked_squash(factor: float | None) -> float | None:
    """Return the factor of `squash` as given.

    Raises:
        ValueError: It is not finite, below 1 or above a million.
    """
    if factor:
        check_number("squash, where not off (None or 0),", factor, least=1, most=LARGEST)
    return factor


def gaussian(distances_NN: Tensor, bandwidth: float) -> Tensor:
    """exp(-d^2 / (2 bandwidth^2))."""
    return torch.exp(-distances_NN.square() / (2 * bandwidth**2))


def laplace(distances_NN: Tensor, bandwidth: float) -> Tensor:
    """exp(-d / bandwidth)."""
    return torch.exp(-distances_NN / bandwidth)


def average_kernel(
    distances_NN: Tensor, kernel: Callable[[Tensor, float], Tensor], bandwidths: Sequence[float]
) -> Tensor:
    """Mean of one kernel over several bandwidths, clamped to [0, 1]."""
    kernels = [kernel(distances_NN, bandwidth) for bandwidth in bandwidths]
    return torch.stack(kernels).mean(0).clamp(0, 1)


def random_kernel(values_N: Tensor, seed: int) -> Tensor:
    """A positive semi-definite kernel that knows which values are equal, but not which are near.

    Each value gets a vector phi of random signs, normalised to length 1, and K_ij = (phi_i . phi_j)^5,
    clamped to [0, 1].

    Args:
        values_N: (N,) values; equal ones share their vector.
        seed: Of a generator of its own; no global random state is touched.

    Returns:
        (N, N), one on the diagonal.
    """
    distinct_M, which_N = values_N.unique(return_inverse=True)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    shape = (len(distinct_M), RADEMACHER_FEATURES)
    signs_MF = 2 * torch.randint(0, 2, shape, generator=generator, device="cpu") - 1
    features_NF = signs_MF.to(values_N)[which_N] / math.sqrt(RADEMACHER_FEATURES)
    return (features_NF @ features_NF.T).pow(5).clamp(0, 1)


def shuffle_values(values_N: Tensor, seed: int) -> Tensor:
    """Deal the different values out again at random; tokens of equal value stay equal.

    Args:
        values_N: (N,) values.
        seed: Of a generator of its own.

    Returns:
        (N,) the same values at other tokens.
    """
    distinct_M, which_N = values_N.unique(return_inverse=True)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    return distinct_M[torch.randperm(len(distinct_M), generator=generator, device="cpu")][which_N]


def smoothness_weight(kernel_NN: Tensor) -> float:
    """Published weight of the smoothness term: alpha = 1 / (2 mean_i D_ii)."""
    return 1 / (2 * kernel_NN.sum(1).mean().item())
