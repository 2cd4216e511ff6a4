"""The model of losses and seeds: against Student's paired test, closed forms, and what must not change it."""

import numpy as np
import pytest
from scipy import stats

from smmd_lightning.compare.two_way import fit_two_way


def table(values_LS, losses="bacd"):
    """Values by loss and seed from an array; the first loss is the baseline."""
    return {loss: dict(enumerate(map(float, row))) for loss, row in zip(losses, values_LS, strict=False)}


def test_two_losses_are_students_paired_test():
    values_LS = np.random.default_rng(0).normal(size=(2, 6))
    found = fit_two_way(table(values_LS), "b")
    t = found.differences_C[0] / (found.residual_sd * np.sqrt(found.scale_CC[0, 0]))
    expected = stats.ttest_rel(values_LS[1], values_LS[0])
    assert found.freedom == 5
    assert t == pytest.approx(expected.statistic, rel=1e-10)
    assert found.uneven_p == 1.0  # with two losses both spread alike by construction


def test_a_full_table_follows_the_closed_form():
    values_LS = np.random.default_rng(1).normal(size=(4, 5))
    found = fit_two_way(table(values_LS), "b")
    residual_LS = values_LS - values_LS.mean(0) - values_LS.mean(1, keepdims=True) + values_LS.mean()
    assert found.losses == ("a", "c", "d")
    assert found.freedom == 12
    assert found.residual_sd == pytest.approx(np.sqrt((residual_LS**2).sum() / 12), rel=1e-10)
    np.testing.assert_allclose(found.differences_C, values_LS[1:].mean(1) - values_LS[0].mean(), rtol=1e-10)
    np.testing.assert_allclose(np.diag(found.scale_CC), 2 / 5, rtol=1e-10)
    np.testing.assert_allclose(found.correlation_CC, 0.5 + 0.5 * np.eye(3), rtol=1e-10)


def test_what_a_seed_brings_along_changes_nothing_also_where_losses_lack_seeds():
    rng = np.random.default_rng(2)
    values = table(rng.normal(size=(4, 6)))
    for seed in (0, 3):
        del values["c"][seed]
    del values["d"][5]
    shift = dict(enumerate(rng.normal(scale=100, size=6)))
    moved = {loss: {seed: value + shift[seed] for seed, value in of.items()} for loss, of in values.items()}
    first, second = fit_two_way(values, "b"), fit_two_way(moved, "b")
    assert first.freedom == 24 - 3 - 9
    np.testing.assert_allclose(first.differences_C, second.differences_C, atol=1e-9)
    assert first.residual_sd == pytest.approx(second.residual_sd, rel=1e-9)
    assert first.scale_CC[1, 1] > first.scale_CC[2, 2] > first.scale_CC[0, 0]  # fewer seeds, larger errors


def test_seeds_without_the_baseline_are_left_out():
    values_LS = np.random.default_rng(3).normal(size=(3, 4))
    values = table(values_LS)
    more = {loss: dict(of) for loss, of in values.items()}
    more["a"][77] = 1e6
    np.testing.assert_array_equal(fit_two_way(values, "b").differences_C, fit_two_way(more, "b").differences_C)


def test_without_a_residual_there_is_no_model():
    assert fit_two_way({"b": {1: 0.0}, "a": {1: 1.0}}, "b") is None
    assert fit_two_way({"b": {1: 0.0, 2: 1.0}}, "b") is None
    assert fit_two_way({"b": {1: 0.0, 2: 1.0}, "a": {3: 1.0}}, "b") is None


def test_the_test_of_the_baselines_spread_is_exact_under_even_spread_and_finds_uneven_one():
    rng = np.random.default_rng(4)
    even = [fit_two_way(table(rng.normal(size=(4, 5))), "b").uneven_p for _ in range(400)]
    assert stats.kstest(even, "uniform").pvalue > 0.001
    wide = np.array([10.0, 1, 1, 1])[:, None]
    uneven = [fit_two_way(table(wide * rng.normal(size=(4, 5))), "b").uneven_p for _ in range(100)]
    assert np.mean(np.array(uneven) < 0.05) > 0.9
