"""Scores of distributions over numbers against slow loops in exact arithmetic."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.metrics import DistributionMetrics, larger_is_better
from smmd_lightning.metrics.functional.distribution import (
    central_interval,
    crps,
    expected_value,
    nll,
    penalised_mae,
    quantile,
)

DISTRIBUTIONS = st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 9)), min_size=1, max_size=6)


def tensors(pairs, missing=0):
    """Values and probabilities of weighted integers; `missing` is weight that belongs to no value."""
    total = sum(weight for _, weight in pairs) + missing
    values = torch.tensor([[float(value) for value, _ in pairs]], dtype=torch.float64)
    probs = torch.tensor([[weight / total for _, weight in pairs]], dtype=torch.float64)
    return values, probs


def mean_over(pairs, function):
    total = sum(weight for _, weight in pairs)
    return sum(Fraction(weight, total) * function(value) for value, weight in pairs)


def distance(first, second, period):
    off = abs(first - second)
    return off if period is None else min(off % period, -off % period)


@given(DISTRIBUTIONS, st.integers(-25, 25), st.sampled_from([None, 12, 50]), st.integers(0, 5))
def test_crps_equals_its_definition(pairs, truth, period, missing):
    first = mean_over(pairs, lambda value: distance(value, truth, period))
    spread = mean_over(pairs, lambda value: mean_over(pairs, lambda other: distance(value, other, period)))
    found = crps(*tensors(pairs, missing), torch.tensor([float(truth)]), period)
    assert found.item() == pytest.approx(float(first - spread / 2), abs=1e-12)


@given(DISTRIBUTIONS, st.integers(-20, 20), st.integers(0, 5))
def test_likelihood_adds_up_equal_values_and_takes_missing_mass_as_missing(pairs, truth, missing):
    total = sum(weight for _, weight in pairs) + missing
    hit = sum(weight for value, weight in pairs if value == truth)
    found = nll(*tensors(pairs, missing), torch.tensor([float(truth)])).item()
    assert found == (pytest.approx(-math.log(hit / total), abs=1e-12) if hit else math.inf)


@given(DISTRIBUTIONS, st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]), st.integers(0, 5))
def test_quantiles_equal_their_definition(pairs, level, missing):
    total = sum(weight for _, weight in pairs)
    values = sorted({value for value, _ in pairs})
    wanted = next(
        value
        for value in values
        if Fraction(sum(weight for other, weight in pairs if other <= value), total) >= Fraction(str(level))
    )
    assert quantile(*tensors(pairs, missing), level).item() == wanted


@given(DISTRIBUTIONS, st.randoms())
def test_the_order_of_values_does_not_matter(pairs, dice):
    mixed = list(pairs)
    dice.shuffle(mixed)
    for function in (lambda *both: crps(*both, torch.zeros(1)), expected_value, lambda *both: quantile(*both, 0.5)):
        assert function(*tensors(mixed)).item() == pytest.approx(function(*tensors(pairs)).item(), abs=1e-12)


@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_no_distribution_scores_better_in_the_mean_than_the_true_one(true, other):
    def expected(said):
        return mean_over(true, lambda value: Fraction(crps(*tensors(said), torch.tensor([float(value)])).item()))

    assert expected(true) <= expected(other) + Fraction(1, 10**9)


def test_a_sure_and_right_distribution_costs_nothing():
    values, probs, truth = torch.tensor([[3.0, 9.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([3.0])
    assert crps(values, probs, truth).item() == 0
    assert nll(values, probs, truth).item() == 0
    assert [edge.item() for edge in central_interval(values, probs, 0.9)] == [3, 3]


def test_crps_of_a_sure_answer_is_its_error():
    assert crps(torch.tensor([[3.0]]), torch.tensor([[1.0]]), torch.tensor([7.5])).item() == 4.5


def test_values_without_probability_may_be_anything():
    values = torch.tensor([[3.0, math.nan], [math.inf, 5.0]])
    probs = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert crps(values, probs, torch.tensor([3.0, 4.0])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "probs", "message"),
    [
        ([[1.0]], [[0.5, 0.5]], r"must both be \(N, V\), got \(1, 1\) and \(1, 2\)"),
        ([[1.0, 2.0]], [[-0.1, 1.1]], "finite and at least 0"),
        ([[1.0, 2.0]], [[0.9, 0.9]], "at most 1, got 1.8"),
        ([[math.inf]], [[1.0]], "must be finite"),
    ],
)
def test_what_is_no_distribution_is_refused(values, probs, message):
    with pytest.raises(ValueError, match=message):
        crps(torch.tensor(values), torch.tensor(probs), torch.zeros(1))


def test_a_level_outside_0_to_1_is_refused():
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 50"):
        quantile(torch.ones(1, 1), torch.ones(1, 1), 50)


def answers():
    values = torch.tensor([[3.0, 5.0, 0.0], [10.0, 20.0, 30.0], [0.0, 0.0, 0.0]])
    probs = torch.tensor([[0.5, 0.5, 0.0], [0.04, 0.92, 0.04], [0.0, 0.0, 0.0]])
    return values, probs, torch.tensor([3.0, 30.0, 8.0]), torch.tensor([5.0, 20.0, math.nan])


def test_the_metrics_of_a_few_answers():
    metric = DistributionMetrics()
    metric.update(*answers())
    values = {name: value.item() for name, value in metric.compute().items()}
    spread = 2 * (0.04 * 0.96 + 0.96 * 0.04) * 10
    assert values == pytest.approx(
        {
            "crps": (0.5 + (0.04 * 20 + 0.92 * 10) - spread / 2) / 2,
            "nll": (math.log(2) - math.log(0.04)) / 2,
            "mae_median": (0 + 10) / 2,
            "mae_mean": (1 + 10) / 2,
            "mae_greedy": (2 + 10) / 2,
            "penalised_mae_median": (0 + 10 + 8) / 3,  # without a distribution: what the answer 0 costs
            "coverage_50_percent": 1 / 2,
            "coverage_error_50_percent": 0,
            "width_50_percent": (2 + 0) / 2,
            "coverage_90_percent": 1 / 2,
            "coverage_error_90_percent": 0.4,
            "width_90_percent": (2 + 0) / 2,
            "without_distribution": 1 / 3,
            "mass_left_out": 1 / 3,  # all of the last one
        },
        rel=1e-6,
        abs=1e-7,
    )


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_two_processes_agree_with_one(cut):
    whole, gathered = DistributionMetrics(), DistributionMetrics()
    whole.update(*answers())
    ranks = [DistributionMetrics(), DistributionMetrics()]
    for rank, shard in zip(ranks, (slice(0, cut), slice(cut, None)), strict=True):
        rank.update(*(part[shard] for part in answers()))
    gathered.rows = torch.cat([row for rank in ranks for row in rank.rows])  # what torchmetrics does
    gathered._update_count = 1
    for name, value in whole.compute().items():
        assert gathered.compute()[name].item() == pytest.approx(value.item(), abs=1e-12), name


def test_errors_go_the_shorter_way_round_a_dial():
    metric = DistributionMetrics(period=720)
    metric.update(torch.tensor([[719.0]]), torch.tensor([[1.0]]), torch.tensor([0.0]))
    values = metric.compute()
    assert (values["crps"], values["mae_median"]) == (1, 1)
    with pytest.raises(ValueError, match="period must be above 0, got 0"):
        DistributionMetrics(period=0)


def test_proper_scores_are_better_small():
    for name in ("val/crps", "test/nll", "mae_median", "coverage_error_90_percent"):
        assert not larger_is_better(name)
    with pytest.raises(ValueError, match="Nothing says whether more or less"):
        larger_is_better("coverage_90_percent")  # neither: it should be 90 %


def test_penalised_error_equals_a_loop():
    errors, penalty = torch.tensor([-2.0, math.nan, 3.0]), torch.tensor([9.0, 9.0, 9.0])
    assert penalised_mae(errors, penalty).item() == pytest.approx((2 + 9 + 3) / 3)
