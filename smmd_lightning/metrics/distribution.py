"""Scores of distributions over numbers as a torchmetrics class; the formulas are in `metrics.functional.distribution`.

Unusual: one row of floats per answer is kept until `compute`, so values are right over any number of processes.

One real example::

    >>> metric = DistributionMetrics()
    >>> metric.update(torch.tensor([[3.0, 5.0]]), torch.tensor([[0.5, 0.5]]), torch.tensor([3.0]))
    >>> round(metric.compute()["crps"].item(), 3)
    0.5
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from smmd_lightning.metrics.facts import MetricFacts
from smmd_lightning.metrics.functional.distribution import central_interval, crps, expected_value, nll, quantile

LEVELS = (0.5, 0.9)
COLUMNS = ("crps", "nll", "mae_median", "mae_mean", "mae_greedy", "mass_left_out", "penalty")
"""Columns before those of the levels, which are two each: covered, and width."""


class DistributionMetrics(torchmetrics.Metric):
    """CRPS, likelihood, coverage and width of central intervals, and errors of median, mean and greedy answer.

    `compute` gives `crps`, `nll`, `mae_median`, `mae_mean`, `mae_greedy`, `penalised_mae_median`, and for each level
    `coverage_90_percent`, `coverage_error_90_percent` (its distance from the level) and `width_90_percent`;
    `without_distribution` is the share of answers whose row has no mass, which all others but the penalised one leave
    out; `mass_left_out` is the mean of what the others' rows lack to one. A truth among the values left out is taken
    to have all of it, which makes `nll` the least it can be.

    Args:
        period: Length of a scale that closes on itself; CRPS and errors go the shorter way round then.
        kwargs: Settings of `torchmetrics.Metric`.

    Raises:
        ValueError: `period` is not above 0.
    """

    full_state_update = False
    is_differentiable = False
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "crps": MetricFacts("min", "", "CRPS"),
        "nll": MetricFacts("min", "nats", "Negative log-likelihood"),
        "mae_median": MetricFacts("min", "", "Mean error of the median"),
        "mae_mean": MetricFacts("min", "", "Mean error of the mean"),
        "mae_greedy": MetricFacts("min", "", "Mean error of the greedy answer"),
        "penalised_mae_median": MetricFacts("min", "", "Mean error of the median, no answer penalised"),
        "coverage_error_*_percent": MetricFacts("min", "share", "Coverage of {} % intervals, off by"),
        "width_*_percent": MetricFacts("min", "", "Width of {} % intervals"),
        "without_distribution": MetricFacts("min", "share"),
        "mass_left_out": MetricFacts("min", "share", "Probability of answers that were not looked at"),
    }

    rows: list[Tensor]

    def __init__(self, period: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if period is not None and not period > 0:
            raise ValueError(f"period must be above 0, got {period}.")
        self.period = period
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    def update(
        self,
        values_NV: Tensor,
        probs_NV: Tensor,
        truth_N: Tensor,
        greedy_N: Tensor | None = None,
        penalty_N: Tensor | None = None,
        period: float | None = None,
    ) -> None:
        """Adds answers.

        Args:
            values_NV: (N, V) float, values of each distribution.
            probs_NV: (N, V) float, their probabilities; 0 where a row has fewer values.
            truth_N: (N,) float, the right values.
            greedy_N: (N,) float, what greedy decoding answered; NaN where that was no number. None: not known.
            penalty_N: (N,) float, what an answer without a distribution costs. None: the size of the truth, 1 for 0.
            period: Length of these answers' scale where it closes on itself. None: that of the metric.

        Raises:
            ValueError: See `functional.distribution.check_distributions`.
        """
        truth_N = truth_N.double()
        if penalty_N is None:
            penalty_N = torch.where(truth_N == 0, 1.0, truth_N.abs())
        greedy_N = torch.full_like(truth_N, torch.nan) if greedy_N is None else greedy_N.double()
        mass_N = probs_NV.double().sum(1)
        left_N = (1 - mass_N).clamp(min=0)
        period = self.period if period is None else period
        columns = [crps(values_NV, probs_NV, truth_N, period)]
        # A truth that an expansion left out has at most the mass that was left out.
        nll_N = nll(values_NV, probs_NV, truth_N)
        nll_N = torch.where(nll_N.isinf(), -left_N.log(), nll_N)
        columns.append(torch.where(mass_N > 0, nll_N, torch.nan))
        points = (quantile(values_NV, probs_NV, 0.5), expected_value(values_NV, probs_NV), greedy_N)
        columns += [_off(point_N - truth_N, period) for point_N in points]
        columns += [left_N, penalty_N.double()]
        for level in LEVELS:
            low_N, high_N = central_interval(values_NV, probs_NV, level)
            covered_N = ((low_N <= truth_N) & (truth_N <= high_N)).double()
            columns += [torch.where(mass_N > 0, covered_N, torch.nan), high_N - low_N]
        self.rows.append(torch.stack(columns, 1).to(self.device).flatten())

    def compute(self) -> dict[str, Tensor]:
        """Returns all scores by name, over all processes; NaN of no answer."""
        width = len(COLUMNS) + 2 * len(LEVELS)
        table_NC = dim_zero_cat(self.rows).reshape(-1, width) if len(self.rows) else torch.zeros(0, width)
        column = dict(zip(COLUMNS, table_NC.unbind(1), strict=False))
        penalty_N = column.pop("penalty")
        values = {name: torch.nanmean(found_N) for name, found_N in column.items()}
        median_N = column["mae_median"]
        values["penalised_mae_median"] = torch.where(median_N.isnan(), penalty_N, median_N).mean()
        for place, level in enumerate(LEVELS):
            covered_N, width_N = table_NC[:, len(COLUMNS) + 2 * place : len(COLUMNS) + 2 * place + 2].unbind(1)
            name = f"{100 * level:g}_percent"
            values[f"coverage_{name}"] = torch.nanmean(covered_N)
            values[f"coverage_error_{name}"] = (values[f"coverage_{name}"] - level).abs()
            values[f"width_{name}"] = torch.nanmean(width_N)
        values["without_distribution"] = median_N.isnan().double().mean()
        return values


def _off(difference_N: Tensor, period: float | None) -> Tensor:
    off_N = difference_N.abs()
    if period is None:
        return off_N
    off_N = off_N % period
    return torch.minimum(off_N, period - off_N)
