"""Intervals and verdicts over a few seeds."""

import itertools
import math
import random

import pytest
import torch

from smmd_lightning.compare.inference import compare, mean_interval, paired_bootstrap, sign_test, student_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (100, 1.98397)]
)
def test_student_quantiles_are_those_of_the_tables(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, abs=2e-5)


def test_student_interval_covers_the_mean_as_often_as_it_says():
    rng = random.Random(0)
    hits = 0
    for _ in range(2000):
        found = mean_interval([rng.gauss(1.0, 3.0) for _ in range(4)])
        hits += found.low <= 1.0 <= found.high
    assert 0.935 < hits / 2000 < 0.965


def test_bootstrap_comes_close_to_all_resamples_written_out():
    differences = [0.01, 0.05, -0.02, 0.04]
    means = sorted(sum(drawn) / 4 for drawn in itertools.product(differences, repeat=4))
    low, high = means[round(0.025 * (len(means) - 1))], means[round(0.975 * (len(means) - 1))]
    found = paired_bootstrap(differences)
    assert found.value == pytest.approx(0.02)
    assert found.low == pytest.approx(low, abs=0.004)
    assert found.high == pytest.approx(high, abs=0.004)


def test_pairs_are_kept_together():
    # Seeds differ a lot, the loss always by the same: only the pairs show it.
    baseline = [0.2, 0.5, 0.8, 0.35]
    found = compare([value + 0.02 for value in baseline], baseline)
    assert found.verdict == "better"
    assert found.bootstrap.low == pytest.approx(0.02)
    assert compare([0.22, 0.82, 0.52, 0.37], baseline).verdict == "within noise"  # the same values, pairs mixed up


def test_three_differences_of_one_sign_are_not_enough():
    found = compare([0.61, 0.64, 0.70], [0.60, 0.60, 0.60])
    assert found.bootstrap.low > 0
    assert found.student.low < 0
    assert found.verdict == "within noise"
    assert (found.wins, found.losses, found.sign_p) == (3, 0, 0.25)


def test_verdict_follows_the_direction_of_the_metric():
    less = compare([1.0, 1.1, 0.9, 1.0], [2.0, 2.1, 1.9, 2.05], larger_is_better=False)
    assert (less.verdict, less.wins, less.losses) == ("better", 4, 0)
    assert compare([1.0, 1.1, 0.9, 1.0], [2.0, 2.1, 1.9, 2.05]).verdict == "worse"


def test_no_difference_and_too_few_seeds():
    assert compare([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]).verdict == "within noise"
    assert compare([0.9], [0.1]).verdict == "too few seeds"
    assert compare([], []).verdict == "too few seeds"
    assert compare([math.nan, 0.3], [0.1, 0.2]).verdict == "undefined"
    assert compare([math.inf, 0.3], [math.inf, 0.2]).verdict == "undefined"
    assert compare([0.1, 0.3], [math.inf, 0.2]).verdict == "undefined"


def test_false_alarms_are_rarer_than_one_in_twenty():
    generator = torch.Generator().manual_seed(3)
    verdicts = []
    for _ in range(60):
        ours, theirs = torch.randn(2, 5, generator=generator, dtype=torch.float64).tolist()
        verdicts.append(compare(ours, theirs).verdict)
    assert sum(verdict != "within noise" for verdict in verdicts) <= 7


def test_sign_test_is_exact():
    assert sign_test(0, 0) == 1.0
    assert sign_test(1, 0) == 1.0
    assert sign_test(9, 1) == pytest.approx(2 * (1 + 10) / 1024)
    assert sign_test(1, 9) == sign_test(9, 1)
