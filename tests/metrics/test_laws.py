"""Laws over whole answers: values, medians, means and intervals on open and on closed scales."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.metrics import ClockMetrics, DistributionMetrics, InstrumentMetrics, MetricsByTask, NumberMetrics
from smmd_lightning.metrics.functional.distribution import crps
from smmd_lightning.metrics.laws import add_law, law_of
from smmd_lightning.types import NumericExample

CLOCK = NumericExample("a", "What time is it?", "12:01", meta={"task": "clock"})
NUMBER = NumericExample("b", "How many?", "42", meta={"task": "number"})
GAUGE = NumericExample(
    "c", "?", "42 bar", meta={"task": "instrument", "value": 42, "tick": 1, "scale": [0, 50], "unit": "bar"}
)


def minutes(total):
    return f"{total // 60 % 12 or 12:02d}:{total % 60:02d}"


@given(st.lists(st.tuples(st.integers(0, 719), st.integers(1, 9)), min_size=1, max_size=8))
def test_the_median_of_times_is_the_answer_nearest_to_all_by_enumeration(pairs):
    total = sum(weight for _, weight in pairs)
    law = law_of(ClockMetrics(), CLOCK, [minutes(at) for at, _ in pairs], [weight / total for _, weight in pairs])

    def cost(at):
        return sum(Fraction(weight, total) * min((at - other) % 720, (other - at) % 720) for other, weight in pairs)

    least = min(cost(at) for at, _ in pairs)
    assert law.median() in {minutes(at) for at, _ in pairs if cost(at) == least}
    assert sum(law.masses) == pytest.approx(1)
    assert max(law.values) - min(law.values) <= 720


def test_intervals_and_means_cross_the_top_of_the_dial():
    law = law_of(ClockMetrics(), CLOCK, ["11:58", "12:00", "12:02"], [0.25, 0.5, 0.25])
    assert (law.median(), law.mean(), law.interval(0.9)) == ("12:00", "12:00", ("11:58", "12:02"))
    scores = DistributionMetrics()
    add_law(scores, law, CLOCK, "11:58", ClockMetrics())
    values = {name: value.item() for name, value in scores.compute().items()}
    assert values["mae_greedy"] == 3
    assert values["mae_median"] == 1
    assert values["crps"] == pytest.approx(0.25 * 3 + 0.5 * 1 + 0.25 * 1 - (2 * (0.125 * 2 * 2) + 2 * 0.0625 * 4) / 2)
    assert values["coverage_90_percent"] == 1


def test_an_answer_keeps_its_words_and_unit_and_errors_are_parts_of_the_scale():
    law = law_of(InstrumentMetrics(), GAUGE, ["40 bar", "41 bar", "44 bar"], [0.3, 0.25, 0.35])
    assert law.median() == "41 bar"
    assert law.mean() == "42 bar"
    scores = DistributionMetrics()
    add_law(scores, law, GAUGE, "40 bar", InstrumentMetrics())
    values = {name: value.item() for name, value in scores.compute().items()}
    expected = crps(torch.tensor([[80.0, 82, 88]]), torch.tensor([[0.3, 0.25, 0.35]]), torch.tensor([84.0])).item()
    assert values["crps"] == pytest.approx(expected, rel=1e-6)
    assert values["mae_greedy"] == 4
    assert values["mass_left_out"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("value", "like", "written"),
    [(4.3, "4.25 bar", "4.30 bar"), (30.6, "31%", "31%"), (-2.0, "-3", "-2"), (1234.5, "1,000.0", "1234.5")],
)
def test_a_value_is_written_as_the_answer_beside_it(value, like, written):
    assert NumberMetrics().text_of(value, like) == written


def test_two_ways_to_write_a_value_are_one_and_words_have_none():
    law = law_of(NumberMetrics(), NUMBER, ["42", "42.0", "forty-ish", "41"], [0.4, 0.2, 0.1, 0.05])
    assert law.values == (42, 41)
    assert law.masses == pytest.approx((0.6, 0.05))
    assert law.described()["left_out"] == pytest.approx(0.35)
    assert law_of(NumberMetrics(), NUMBER, ["none"], [1.0]) is None
    word = NumericExample("d", "Which?", "Spain", meta={"task": "number", "numeric": False})
    assert law_of(NumberMetrics(), word, ["Spain"], [1.0]) is None


def test_answers_without_a_value_are_penalised_and_words_leave_no_trace():
    metrics = MetricsByTask(with_laws=True)
    word = NumericExample("d", "Which?", "Spain", meta={"task": "number", "numeric": False})
    examples, texts = [NUMBER, NUMBER, word], ["41", "no idea", "Spain"]
    laws = [metrics.law(NUMBER, ["41"], [0.5]), metrics.law(NUMBER, ["no idea"], [0.9]), None]
    metrics.update(texts, examples)
    metrics.update_laws(laws, examples, texts)
    values = {name: value.item() for name, value in metrics.compute().items()}
    assert values["mae_median"] == 1
    assert values["penalised_mae_median"] == (1 + 42) / 2
    assert values["without_distribution"] == 0.5
    assert values["nll"] == pytest.approx(-torch.tensor(0.5).log().item())  # the truth has what was left out, at most
    metrics.reset()
    assert "crps" not in metrics.compute()


def test_stray_values_count_as_the_limits_of_the_question():
    limited = NumericExample("b", "How many?", "42", meta={"task": "number", "limits": [0, 100]})
    law = law_of(NumberMetrics(), limited, ["42", "9000000"], [0.9, 0.1])
    for example, far in ((limited, 100.0), (NUMBER, 9e6)):
        scores = DistributionMetrics()
        add_law(scores, law, example, "9000000", NumberMetrics())
        found = {name: value.item() for name, value in scores.compute().items()}
        assert found["crps"] == pytest.approx(0.01 * (far - 42))  # mass 0.1 squared times the distance
        assert found["mae_greedy"] == pytest.approx(far - 42)
    wrong = NumericExample("b", "How many?", "42", meta={"task": "number", "limits": [100, 0]})
    with pytest.raises(ValueError, match="limits"):
        add_law(DistributionMetrics(), law, wrong, "42", NumberMetrics())
