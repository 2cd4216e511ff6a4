"""Answers that are numbers: exact values, errors, tolerances."""

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.metrics import NumberMetrics
from smmd_lightning.metrics.functional import number_answers, relative_error
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
            "mean_relative_error": (0 + 0.04 + 0.05) / 3,  # the truth 0 has no relative error
            "median_relative_error": 0.045,  # of 0, 0.04, 0.05 and infinity
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
        ("7", "7 big apples", True, 1),
    ],
)
def test_a_truth_that_is_no_number_is_compared_as_text(answer, truth, numeric, exact):
    metric = NumberMetrics()
    metric.update([answer], [example(truth, numeric=numeric)])
    values = metric.compute()
    assert values["exact_match"].item() == exact
    assert ("mean_absolute_error" in values) == (numeric is True)


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
