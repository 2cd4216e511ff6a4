"""The model behind a comparison: value = loss + seed + residual, one task and metric at a time.

Every loss is trained with the same seeds, so seeds are blocks: what a seed brings along (weights, data, order) belongs
to the seed's effect, and the residual is pooled over all losses. `scipy.stats.dunnett` is for independent groups and
does not apply here.

Shape legend: N runs, P parameters (one per seed, one per loss but the baseline), C losses but the baseline.

One real example, two losses and three seeds; with two losses the model is Student's paired test::

    >>> found = fit_two_way({"ce": {1: 0.50, 2: 0.55, 3: 0.52}, "smmd": {1: 0.53, 2: 0.57, 3: 0.54}}, "ce")
    >>> round(float(found.differences_C[0]), 4), found.freedom
    (0.0233, 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

Values = Mapping[str, Mapping[int, float]]
"""A metric by loss and seed; all values finite."""


@dataclass(frozen=True)
class TwoWay:
    """A fitted model.

    Attributes:
        losses: The C losses that are compared with the baseline, in the order of the arrays.
        differences_C: Estimated differences to the baseline.
        scale_CC: Covariance of the differences in units of the residual variance.
        residual_sd: Standard deviation of the residual, pooled over all losses.
        freedom: Degrees of freedom of the residual.
        uneven_p: p of the test that the baseline's residuals spread as the others' do; 1 where it cannot be tested.
    """

    losses: tuple[str, ...]
    differences_C: np.ndarray
    scale_CC: np.ndarray
    residual_sd: float
    freedom: int
    uneven_p: float

    @property
    def correlation_CC(self) -> np.ndarray:
        """Correlations of the differences; 0.5 everywhere where each loss has every seed."""
        root_C = np.sqrt(np.diag(self.scale_CC))
        return self.scale_CC / np.outer(root_C, root_C)


def fit_two_way(values: Values, baseline: str) -> TwoWay | None:
    """Fits the model by least squares, on the seeds that the baseline has.

    Args:
        values: The metric by loss and seed. Losses may lack seeds.
        baseline: Name of the loss that the others are compared with.

    Returns:
        The model; None where no residual is left to judge by.
    """
    seeds = sorted(values[baseline])
    losses = tuple(loss for loss in values if loss != baseline and set(values[loss]) & set(seeds))
    runs = [(loss, seed) for loss in (baseline, *losses) for seed in seeds if seed in values[loss]]
    design_NP = np.array(
        [[seed == of for of in seeds] + [loss == of for of in losses] for loss, seed in runs], dtype=np.float64
    ).reshape(len(runs), len(seeds) + len(losses))
    freedom = len(runs) - design_NP.shape[1]
    if freedom < 1 or not losses:
        return None
    values_N = np.array([values[loss][seed] for loss, seed in runs], dtype=np.float64)
    effects_P, squares = _least_squares(design_NP, values_N)
    scale_PP = np.linalg.inv(design_NP.T @ design_NP)
    first = len(seeds)
    return TwoWay(
        losses,
        effects_P[first:],
        scale_PP[first:, first:],
        float(np.sqrt(squares / freedom)),
        freedom,
        _uneven_p(design_NP, values_N, squares, freedom, first),
    )


def _uneven_p(design_NP: np.ndarray, values_N: np.ndarray, squares: float, freedom: int, seeds: int) -> float:
    """Compares the baseline's residuals with those of the others: the F test of leaving the baseline's runs out.

    The baseline stands in every difference, so a spread of its own is what the pooled residual forgives least.
    """
    others = slice(seeds, None)  # the baseline's runs come first, one per seed
    left = freedom - (seeds - 1)
    if seeds < 2 or left < 1:
        return 1.0
    _, squares_of_others = _least_squares(design_NP[others], values_N[others])
    if squares_of_others <= 0:
        return 1.0
    ratio = (squares - squares_of_others) / (seeds - 1) / (squares_of_others / left)
    return float(stats.f.sf(ratio, seeds - 1, left))


def _least_squares(design_NP: np.ndarray, values_N: np.ndarray) -> tuple[np.ndarray, float]:
    """Effects, and the sum of squared residuals."""
    effects_P = np.linalg.lstsq(design_NP, values_N, rcond=None)[0]
    return effects_P, float(np.sum((values_N - design_NP @ effects_P) ** 2))
