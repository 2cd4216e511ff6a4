"""Answers that are numbers: exact values, errors, tolerances."""

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.metrics import ChartMetrics, MetricsByTask, NumberMetrics
from smmd_lightning.metrics.functional import chart_answers, number_answers, relative_error
from smmd_lightning.metrics.functional.summaries import median
from smmd_lightning.types import NumericExample


def example(answer, **meta):
    return NumericExample("a", "", answer, meta=meta)


def test_all_metrics_of_a_few_answers():
    answers = ["72", "#### 104", "95.0", "I don't know", "-5."]
    truths = ["48+24 = <<48+24=72>>72\n#### 72", "100", "100", "10", "0"]
    values = {name: value.item() for name, value in number_answers(answers, truths).items()}
    assert values == pytest.approx(
        {
            "exact_match": 1 / 5,
            "parse_failures": 1 / 5,
            "mean_absolute_error": (0 + 4 + 5 + 5) / 4,  # the answer without a number has no error
            "median_absolute_error": 5,  # of 0, 4, 5, 5 and infinity
            "penalised_mean_absolute_error": (0 + 4 + 5 + 10 + 5) / 5,  # no answer costs the truth, 10
            "capped_mean_absolute_error": (0 + 4 + 5 + 10 + 1) / 5,  # nothing costs more than the truth, or 1 at 0
            "mean_relative_error": (0 + 0.04 + 0.05) / 3,  # the truth 0 has no relative error
            "median_relative_error": 0.05,  # of 0, 0.04, 0.05 and twice infinity: no answer, and a wrong one at 0
            "capped_mean_relative_error": (0 + 0.04 + 0.05 + 1 + 1) / 5,
            "within_0_percent": 1 / 5,
            "within_1_percent": 1 / 5,
            "within_2_percent": 1 / 5,
            "within_5_percent": 3 / 5,
            "within_10_percent": 3 / 5,
        }
    )


@pytest.mark.parametrize(
    ("answer", "truth", "exact"),
    [
        ("29", "$29.00", 1),
        ("0.75", "3/4", 1),
        ("-2/1097", "-2 / 1097", 1),
        ("1000", "1,000", 1),
        ("0.3", "0.30000001", 0),
    ],
)
def test_exact_match_compares_values(answer, truth, exact):
    assert number_answers([answer], [truth])["exact_match"].item() == exact


@pytest.mark.parametrize(
    ("answer", "truth", "numeric", "exact"),
    [
        ("12:48 pm", "12:48 PM", None, 1),
        ("12", "12:48 PM", None, 0),
        ("-DB", "-db", None, 1),
        ("2", "2c", None, 0),
        ("200000", "2e5", False, 0),
        ("2E5", "2e5", False, 1),
        ("", "c", None, 0),
        ("The answer is c.", "c", None, 1),
        ("(C)", "C", None, 1),
        ("C) 5", "C", None, 1),
        ("C", "(C)", None, 1),
        ("B) 5", "C", None, 0),
        ("Carbon", "C", None, 0),
        ("", ".", None, 0),
        ("", "$", None, 0),
        ("", "\u200b", None, 0),
        ("7", "7 big apples", True, 1),
    ],
)
def test_a_truth_that_is_no_number_is_compared_as_text(answer, truth, numeric, exact):
    metric = NumberMetrics()
    metric.update([answer], [example(truth, numeric=numeric)])
    values = metric.compute()
    assert values["exact_match"].item() == exact
    assert ("mean_absolute_error" in values) == (numeric is True)


@pytest.mark.parametrize(("answer", "exact"), [("0.12", 1), ("12", 1), ("12%", 1), ("12 percent", 1), ("1.2", 0)])
def test_a_percentage_may_be_written_as_a_share_as_on_charts(answer, exact):
    assert number_answers([answer], ["12%"])["exact_match"].item() == exact
    assert chart_answers([answer], ["12%"])["exact_match"].item() == exact
    assert number_answers(["12%"], ["0.12"])["exact_match"].item() == 1


def test_refusals_cost_what_the_answer_0_would():
    refused = number_answers(["no idea"] * 99 + ["7"], ["50"] * 99 + ["7"])
    zeros = number_answers(["0"] * 99 + ["7"], ["50"] * 99 + ["7"])
    assert refused["mean_absolute_error"].item() == 0  # of the one answer that holds a number
    for name in ("penalised_mean_absolute_error", "capped_mean_absolute_error", "capped_mean_relative_error"):
        assert refused[name].item() == zeros[name].item() > 0, name


def test_one_wild_answer_does_not_make_the_capped_means():
    values = number_answers(["9" * 31, "10"], ["10", "10"])
    assert values["mean_absolute_error"].item() > 1e29
    assert values["capped_mean_absolute_error"].item() == 5
    assert values["capped_mean_relative_error"].item() == 0.5


@given(st.lists(st.tuples(st.integers(-50, 50) | st.none(), st.integers(-50, 50)), min_size=1, max_size=8))
def test_penalised_and_capped_means_equal_slow_loops(pairs):
    values = number_answers([str(said) for said, _ in pairs], [str(truth) for _, truth in pairs])
    penalised = capped = relative = 0.0
    for said, truth in pairs:
        penalty = abs(truth) or 1
        off = None if said is None else abs(said - truth)
        penalised += penalty if off is None else off
        capped += penalty if off is None else min(off, penalty)
        relative += 1 if off is None else min(1, off / abs(truth)) if truth else float(off > 0)
    for name, total in (
        ("penalised_mean_absolute_error", penalised),
        ("capped_mean_absolute_error", capped),
        ("capped_mean_relative_error", relative),
    ):
        assert values[name].item() == pytest.approx(total / len(pairs), rel=1e-6)


def test_decimal_commas_words_and_roman_numerals_are_settings_of_the_task():
    metric = NumberMetrics(decimals="comma", words=True, roman=True)
    metric.update(["1,250", "seven", "XIV"], [example("1.25", decimals="point"), example("7"), example("14")])
    assert metric.compute()["exact_match"].item() == pytest.approx(2 / 3)
    metric.reset()
    metric.update(["1,250", "It reads seven"], [example("1,25"), example("seven")])
    assert metric.compute()["exact_match"].item() == 1
    assert NumberMetrics().score("seven", example("7")).parsed is None
    assert NumberMetrics().score("seven", example("7", words=True)).correct
    charts = ChartMetrics(decimals="comma")
    assert charts.score("1,250", example("1,25")).correct
    assert charts.score("1,5 and 2,5", example("[1,5; 2,50]")).correct
    assert not charts.score("1,5 and 2", example("[1,5; 2,5]")).correct


def test_answers_that_the_limit_of_tokens_cut_off_are_counted():
    metrics = MetricsByTask()
    rows = [example("1", task="math"), example("2", task="chart"), example("3", task="math")]
    metrics.update(["1", "2", ""], rows, cut_off=[False, True, True])
    values = metrics.compute()
    assert values["math/cut_off"].item() == 0.5
    assert values["cut_off"].item() == pytest.approx(2 / 3)
    assert metrics.row("1", rows[0], cut_off=True)["cut_off"] is True
    assert "cut_off" not in metrics.row("1", rows[0])
    metrics.reset()
    metrics.update(["1"], rows[:1])
    assert "cut_off" not in metrics.compute()
    with pytest.raises(ValueError, match="2 values of cut_off for 1 examples"):
        NumberMetrics().update(["1"], rows[:1], cut_off=[True, False])


def test_text_truths_do_not_dilute_errors_and_tolerances():
    values = number_answers(["110", "c", "d"], ["100", "c", "c"])
    assert values["exact_match"].item() == pytest.approx(1 / 3)
    assert values["within_10_percent"].item() == 1
    assert values["mean_absolute_error"].item() == 10


def test_truth_and_prediction_are_not_interchangeable():
    assert relative_error(Decimal(95), Decimal(100)) == Decimal("0.05")
    assert relative_error(Decimal(100), Decimal(95)) > Decimal("0.05")
    assert number_answers(["95"], ["100"])["within_5_percent"].item() == 1
    assert number_answers(["100"], ["95"])["within_5_percent"].item() == 0


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6).filter(bool), st.integers(0, 10))
def test_tolerances_hold_exactly_at_their_edge(answer, truth, percent):
    values = number_answers([str(answer)], [str(truth)], tolerances=[percent / 100])
    assert values[f"within_{percent}_percent"].item() == (100 * abs(answer - truth) <= percent * abs(truth))


def test_a_nearer_answer_is_never_worse():
    order = ["100", "99", "90", "-100", "1e300", "none"]
    medians = [number_answers([answer], ["100"])["median_absolute_error"].item() for answer in order]
    assert medians == sorted(medians)
    assert math.isinf(medians[-1])
    assert math.isfinite(medians[-2])


def test_the_median_shrugs_off_one_wild_answer_and_the_mean_does_not():
    values = number_answers(["10", "11", "12", "1e12"], ["10"] * 4)
    assert values["median_absolute_error"].item() == 1.5
    assert values["mean_absolute_error"].item() > 1e11


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 10])
def test_the_median_agrees_with_torch_quantile(number):
    values = torch.randn(number, generator=torch.Generator().manual_seed(number))
    assert median(values).item() == pytest.approx(values.quantile(0.5).item())


def test_results_by_kind_are_those_of_the_kind_alone():
    metric = NumberMetrics()
    answers, truths = ["1", "2", "3", "4"], ["1", "2", "9", "9"]
    kinds = ["sum", "größe/2", "sum", None]
    metric.update(answers, [example(truth, kind=kind) for truth, kind in zip(truths, kinds, strict=True)])
    values = metric.compute()
    assert values["by_kind/sum/exact_match"].item() == 0.5
    assert values["by_kind/größe/2/exact_match"].item() == 1
    assert len([name for name in values if name.startswith("by_kind")]) == 2


def test_one_kind_alone_is_not_repeated():
    metric = NumberMetrics()
    metric.update(["1", "2"], [example("1", kind="sum"), example("3", kind="sum")])
    assert not any(name.startswith("by_kind") for name in metric.compute())


def test_scores_say_what_was_parsed():
    score = NumberMetrics().score("So $1,020.50 in all", example("1000"))
    assert (score.parsed, score.truth, score.error, score.correct) == ("1020.50", "1000", 20.5, False)
    assert NumberMetrics().score("none", example("1000")).error is None


def test_a_rule_for_several_numbers_can_be_chosen():
    metric = NumberMetrics(rule="first", tolerances=())
    metric.update(["3 or 4"], [example("3")])
    assert metric.compute()["exact_match"] == 1


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match=r"tolerances must be 0 or more, 0.05 for 5 %, got \[-0.1\]"):
        NumberMetrics(tolerances=[-0.1])
    with pytest.raises(ValueError, match="Example 'a': The right answer must hold a number, got 'many'"):
        NumberMetrics().update(["3"], [example("many", numeric=True)])
