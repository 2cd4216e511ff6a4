"""Verdicts over a few seeds."""

import math

import numpy as np
import pytest
from scipy import stats

from smmd_lightning.compare import inference
from smmd_lightning.compare.inference import (
    compare_task,
    joint_p,
    joint_quantile,
    judge,
    least_detectable,
    mean_interval,
)


def table(**values):
    return {loss: dict(enumerate(found, start=1)) for loss, found in values.items()}


def verdict(values, **options):
    """The verdict on the only loss."""
    (found,) = judge({"t": compare_task(values, "ce", **options)})["t"].values()
    return found.text


def equal_correlation(count):
    return 0.5 + 0.5 * np.eye(count)


@pytest.mark.parametrize(("count", "size"), [(1, 3), (2, 3), (4, 5), (9, 4)])
def test_independent_groups_of_one_size_are_judged_as_scipys_dunnett_does(count, size):
    groups = np.random.default_rng(count).normal(size=(count + 1, size))
    groups[1] += 1.5
    expected = stats.dunnett(*groups[1:], control=groups[0], rng=np.random.default_rng(0))
    freedom = (count + 1) * (size - 1)
    found = [joint_p(abs(t), equal_correlation(count), freedom) for t in expected.statistic]
    assert found == pytest.approx(expected.pvalue, abs=5e-4)
    interval = expected.confidence_interval()
    error = math.sqrt(groups.var(axis=1, ddof=1).mean() * 2 / size)
    allowance = (interval.high[0] - interval.low[0]) / 2 / error
    assert joint_quantile(equal_correlation(count), freedom) == pytest.approx(allowance, rel=2e-3)


def test_joint_p_is_the_share_of_simulated_tables_beyond_it():
    rng = np.random.default_rng(0)
    correlation_CC = np.array([[1, 0.5, 0.3], [0.5, 1, 0.6], [0.3, 0.6, 1]])
    z_RC = rng.multivariate_normal(np.zeros(3), correlation_CC, size=100_000)
    largest_R = np.abs(z_RC / np.sqrt(rng.chisquare(8, (100_000, 1)) / 8)).max(1)
    for t in (1.0, 2.5, 4.0):
        share = float((largest_R > t).mean())
        assert joint_p(t, correlation_CC, 8) == pytest.approx(share, abs=4 * math.sqrt(share / 100_000) + 1e-4)


def test_joint_p_far_out_stays_between_its_bounds():
    for t in (8.0, 20.0, 80.0):
        single = 2 * stats.t.sf(t, 20)
        assert single <= joint_p(t, equal_correlation(6), 20) <= 6 * single
    assert joint_p(math.inf, equal_correlation(2), 5) == 0.0
    assert joint_p(0.0, equal_correlation(2), 5) == 1.0


def test_the_least_detectable_difference_is_found_in_four_of_five_cases():
    seeds, sd = 5, 0.7
    error = sd / math.sqrt(seeds)
    shift = least_detectable(error, float(stats.t.ppf(0.975, seeds - 1)), seeds - 1)
    drawn_RS = np.random.default_rng(1).normal(shift, sd, size=(20_000, seeds))
    assert (stats.ttest_1samp(drawn_RS, 0.0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.012)


def test_one_loss_is_judged_by_students_paired_test():
    ours, theirs = [0.62, 0.65, 0.60, 0.66], [0.59, 0.61, 0.58, 0.62]
    (found,) = compare_task(table(ce=theirs, a=ours), "ce")
    expected = stats.ttest_rel(ours, theirs)
    assert found.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    assert (found.seeds, found.wins, found.losses) == (4, 4, 0)


def test_pairs_are_kept_together():
    # Seeds differ a lot, the loss always by about the same: only the pairs show it.
    baseline = [0.2, 0.5, 0.8, 0.35]
    assert verdict(table(ce=baseline, a=[0.221, 0.52, 0.819, 0.371])) == "better"
    assert verdict(table(ce=baseline, a=[0.221, 0.819, 0.52, 0.371])) == "within noise"  # the same, pairs mixed up


def test_three_differences_of_one_sign_are_not_enough():
    (found,) = compare_task(table(ce=[0.60, 0.60, 0.60], a=[0.61, 0.64, 0.70]), "ce")
    assert (found.wins, found.losses) == (3, 0)
    assert found.difference.low < 0
    assert verdict(table(ce=[0.60, 0.60, 0.60], a=[0.61, 0.64, 0.70])) == "within noise"


def test_verdict_follows_the_direction_of_the_metric():
    values = table(ce=[2.0, 2.0, 2.0, 2.05], a=[1.0, 1.1, 0.9, 1.0])
    assert verdict(values, larger_is_better=False) == "better"
    assert verdict(values) == "worse"
    assert compare_task(values, "ce", larger_is_better=False)[0].wins == 4


def test_a_loss_that_spreads_more_is_judged_by_its_own_spread():
    calm = {f"l{k}": [0.5 + 0.001 * ((k * s) % 3) for s in range(5)] for k in range(6)}
    wild = [0.5, 0.9, 0.6, 0.95, 0.55]
    found = {c.loss: c for c in compare_task(table(ce=calm.pop("l0"), wild=wild, **calm), "ce")}
    own = np.std(np.array(wild) - 0.5, ddof=1) / math.sqrt(5)
    half = (found["wild"].difference.high - found["wild"].difference.low) / 2
    assert half > 2.5 * own


def test_a_value_that_is_not_finite_spoils_its_own_loss_alone():
    good = [0.70, 0.71, 0.69, 0.705]
    values = table(ce=[0.5, 0.51, 0.49, 0.5], good=good, broken=[0.5, math.nan, 0.5, 0.5], far=[math.inf] * 4)
    found = judge({"t": compare_task(values, "ce")})["t"]
    assert {loss: of.text for loss, of in found.items()} == {
        "good": "better", "broken": "undefined", "far": "undefined",
    }  # fmt: skip
    without = {loss: of for loss, of in values.items() if loss in ("ce", "good")}
    assert compare_task(without, "ce")[0].p == compare_task(values, "ce")[0].p
    values["ce"][2] = math.nan
    assert {of.text for of in judge({"t": compare_task(values, "ce")})["t"].values()} == {"undefined"}


def test_too_few_seeds_and_no_baseline():
    assert verdict(table(ce=[0.1], a=[0.9])) == "too few seeds"
    assert verdict({"a": {1: 0.5, 2: 0.6}}) == "too few seeds"
    assert verdict({"ce": {3: 0.5, 4: 0.6}, "a": {1: 0.5, 2: 0.6}}) == "too few seeds"


def test_equal_values_are_no_difference():
    assert verdict(table(ce=[0.5, 0.6, 0.7], a=[0.5, 0.6, 0.7])) == "within noise"


def test_a_baseline_that_spreads_more_than_the_rest_gets_no_verdict():
    rng = np.random.default_rng(5)
    values = {loss: rng.normal(0.5 + (loss != "ce") * 10, 0.01, size=8).tolist() for loss in ("ce", "a", "b", "c")}
    values["ce"] = rng.normal(0.5, 1.0, size=8).tolist()
    found = judge({"t": compare_task(table(**values), "ce")})["t"]
    assert {of.text for of in found.values()} == {"uneven spread"}


def test_equality_needs_a_margin_and_enough_seeds():
    rng = np.random.default_rng(6)
    base = rng.normal(0.5, 0.001, size=6)
    values = table(ce=base.tolist(), a=(base + rng.normal(0, 0.002, size=6)).tolist())
    assert verdict(values) == "within noise"
    assert verdict(values, margin=0.02) == "no practical difference"
    assert verdict(values, margin=0.0005) == "within noise"
    (found,) = compare_task(values, "ce", margin=0.02)
    d = np.array([values["a"][s] - values["ce"][s] for s in values["ce"]])
    sides = [
        stats.ttest_1samp(d, 0.02, alternative="less").pvalue,
        stats.ttest_1samp(d, -0.02, alternative="greater").pvalue,
    ]
    assert found.p_equal == pytest.approx(max(sides))


def test_more_tasks_make_a_verdict_harder():
    one = compare_task(table(ce=[0.50, 0.50, 0.50, 0.50], a=[0.52, 0.53, 0.51, 0.54]), "ce")
    noise = compare_task(table(ce=[0.50, 0.51, 0.49, 0.50], a=[0.50, 0.50, 0.50, 0.51]), "ce")
    assert judge({"t": one})["t"]["a"].text == "better"
    found = judge({"t": one, **{f"n{k}": noise for k in range(9)}})["t"]["a"]
    assert found.text == "within noise"
    assert found.p == pytest.approx(10 * one[0].p)


def test_wrong_verdicts_are_rarer_than_one_family_in_twenty(monkeypatch):
    monkeypatch.setattr(inference, "POINTS", 200)
    rng = np.random.default_rng(7)
    wrong, families = 0, 200
    for _ in range(families):
        drawn = rng.normal(size=(2, 4, 5)).tolist()
        tasks = {
            str(number): compare_task(table(ce=ce, a=a, b=b, c=c), "ce") for number, (ce, a, b, c) in enumerate(drawn)
        }
        wrong += any(of.text != "within noise" for found in judge(tasks).values() for of in found.values())
    assert wrong <= stats.binom.ppf(0.999, families, 0.05)


def test_student_interval_covers_the_mean_as_often_as_it_says():
    drawn = np.random.default_rng(8).normal(1.0, 3.0, size=(2000, 4))
    hits = sum(found.low <= 1.0 <= found.high for found in map(mean_interval, drawn.tolist()))
    assert 0.935 < hits / 2000 < 0.965
    assert mean_interval([0.5]) == inference.Interval(0.5, -math.inf, math.inf)
    assert math.isnan(mean_interval([]).value)
