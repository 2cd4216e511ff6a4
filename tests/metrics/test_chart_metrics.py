"""Relaxed accuracy on charts: the published rule bit for bit, and the robust one as a person would judge."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_lightning.metrics import ChartMetrics
from smmd_lightning.metrics.functional import chart_answers, relaxed_correct_official, relaxed_correct_robust
from smmd_lightning.types import NumericExample


def published_rule(target: str, prediction: str) -> bool:
    """The rule's definition, step by step: both as floats (a percent sign divides by 100), 5 % of a truth other than 0,
    else equality of the lower-cased texts."""
    values = []
    for text in (target, prediction):
        percent = text.endswith("%")
        while text.endswith("%"):
            text = text[:-1]
        try:
            values.append(float(text) / 100.0 if percent else float(text))
        except ValueError:
            values.append(None)
    truth, value = values
    if value is None or truth is None or truth == 0:
        return target.lower() == prediction.lower()
    return abs(value - truth) / abs(truth) <= 0.05


def perturbed(label: str, random: random.Random) -> str:
    try:
        value = float(label)
    except ValueError:
        value = random.uniform(-100, 100)
    factor = random.choice([1, 0.95, 1.05, 0.949999, 1.050001, random.uniform(0.9, 1.1), 0, -1, 0.01, 100])
    number = random.choice(["{}", "{:.2f}", "{:.0f}", "{:.3e}", "{:,.1f}", " {} ", "+{}"]).format(value * factor)
    return random.choice(
        [number, number + "%", number + "%%", "$" + number, label.upper(), label + ".", f"[{label}]", label]
    )


def test_official_equals_the_published_rule_on_real_labels(real):
    labels = [
        row["label"] for file in sorted((real / "charts").glob("*/*.json")) for row in json.loads(file.read_text())
    ]
    assert len(labels) >= 260
    chance = random.Random(0)
    outcomes = set()
    for target in labels:
        for other in labels:
            prediction = perturbed(other if chance.random() < 0.5 else target, chance)
            expected = published_rule(target, prediction)
            assert relaxed_correct_official(prediction, target) is expected, (target, prediction)
            outcomes.add(expected)
    assert outcomes == {True, False}


LABELS = [
    "0",
    "0.0",
    "-3",
    "2010",
    "62.3",
    "Yes",
    "no",
    "[2010, 2014]",
    "5.497 trillion",
    "2.72 / 2720",
    "65+",
    "18/19",
    "May '21",
]
LABELS += ["", "%", "nan", "inf", "1e400", "1_0", "٣", " 7 ", "2%", "0%", "1e-320"]


@settings(max_examples=500)
@given(st.sampled_from(LABELS), st.one_of(st.sampled_from(LABELS), st.text(max_size=6)), st.integers())
def test_official_equals_the_published_rule_on_odd_labels(target, other, seed):
    for prediction in (other, perturbed(other, random.Random(seed))):
        assert relaxed_correct_official(prediction, target) is published_rule(target, prediction)


@pytest.mark.parametrize(
    ("prediction", "target", "official", "robust"),
    [
        ("95.2", "100", True, True),
        ("95", "100", True, True),
        ("94.9", "100", False, False),
        ("100", "95", False, False),  # 5 % of the truth, not of the prediction
        ("2%", "2", False, True),
        ("60%", "0.6", True, True),
        ("0.6", "60%", True, True),
        ("60", "60%", False, True),
        ("0.6%", "60", False, False),
        ("0.02", "2", False, False),
        ("2008", "2010", True, False),
        ("2010", "2010", True, True),
        ("in the year 2010", "2010", False, True),
        ("1950.5", "1950", True, False),
        ("1,950", "2010", False, False),
        ("2100.4", "2100.5", True, True),
        ("$1,020", "1000", False, True),
        ("62.3 million", "62300000", False, True),
        ("5497000000000", "5.497 trillion", False, True),
        ("5.497", "5.497 trillion", False, False),
        ("The value was 62.", "62.3", False, True),
        ("In 2020 it was 62.3", "62.3", False, True),
        ("0", "0", True, True),
        ("0.0", "0", False, True),
        ("0.001", "0", False, False),
        ("YES", "Yes", True, True),
        ("Yes.", "Yes", False, True),
        ("Yes, it is higher in 2010.", "Yes", False, True),
        ("Not at all", "No", False, False),
        ("The answer is Brazil.", "Brazil", False, True),
        ("[2010, 2014]", "[2010, 2014]", True, True),
        ("2010, 2014", "[2010, 2014]", False, True),
        ("2010 and 2014.", "[2010, 2014]", False, True),
        ("[2014, 2010]", "[2010, 2014]", False, False),
        ("[2010]", "[2010, 2014]", False, False),
        ("[2010, 2013]", "[2010, 2014]", False, False),
        ("[10.1, Blue]", "[10, blue]", False, True),
        ("2.72/2720", "2.72 / 2720", False, True),
        ("2720", "2.72 / 2720", False, False),
        ("65+", "65+", True, True),
        ("65", "65+", False, False),
        ("65+", "65", False, True),
        ("18/19", "18/19", True, True),
        ("0.947", "18/19", False, False),
        ("may ’21", "May '21", False, True),
        ("", "Yes", False, False),
        ("", "7", False, False),
    ],
)
def test_both_rules_on_answers_people_argue_about(prediction, target, official, robust):
    assert relaxed_correct_official(prediction, target) is official
    assert relaxed_correct_robust(prediction, target) is robust


def test_every_real_label_accepts_itself_and_a_neighbour_within_five_percent(real):
    for file in sorted((real / "charts").glob("*/*.json")):
        for row in json.loads(file.read_text()):
            label = row["label"]
            assert relaxed_correct_robust(label, label)
            assert relaxed_correct_robust(f"The answer is {label}.", label)
            assert relaxed_correct_official(label, label)


@given(st.text(), st.text())
def test_any_pair_of_texts_is_judged_without_an_error(prediction, target):
    relaxed_correct_official(prediction, target)
    relaxed_correct_robust(prediction, target)
    assert relaxed_correct_robust(prediction, prediction) or not prediction.strip()


def test_all_metrics_of_a_few_answers():
    answers = ["2%", "95.2", "2008", "yes", "nothing to see"]
    truths = ["2", "100", "2010", "Yes", "50"]
    values = {name: value.item() for name, value in chart_answers(answers, truths).items()}
    assert values["relaxed_accuracy_official"] == pytest.approx(3 / 5)
    assert values["relaxed_accuracy_robust"] == pytest.approx(3 / 5)
    assert values["exact_match"] == pytest.approx(2 / 5)
    assert values["parse_failures"] == pytest.approx(1 / 5)
    assert values["within_5_percent"] == pytest.approx(3 / 4)  # of the four truths that are numbers
    assert values["mean_absolute_error"] == pytest.approx((0 + 4.8 + 2) / 3)


def test_the_class_agrees_with_its_twin_and_tells_kinds_apart():
    answers, truths, kinds = ["2%", "95.2", "2008"], ["2", "100", "2010"], ["lookup", "ratio", "lookup"]
    metric = ChartMetrics()
    metric.update(answers, [NumericExample("a", "", t, meta={"kind": k}) for t, k in zip(truths, kinds, strict=True)])
    values = metric.compute()
    for name, value in chart_answers(answers, truths).items():
        assert values[name] == value
    assert values["by_kind/lookup/relaxed_accuracy_official"].item() == 0.5
    assert values["by_kind/lookup/relaxed_accuracy_robust"].item() == 0.5
    assert values["by_kind/ratio/relaxed_accuracy_robust"].item() == 1


def test_scores_give_the_relative_error():
    score = ChartMetrics().score("$105", NumericExample("a", "", "100"))
    assert (score.parsed, score.truth, score.error, score.correct) == ("105", "100", pytest.approx(0.05), False)
    score = ChartMetrics().score("Yes", NumericExample("a", "", "No"))
    assert (score.parsed, score.truth, score.error, score.correct) == ("Yes", "No", None, False)
