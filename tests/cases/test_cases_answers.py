"""Answers, where no test beside the code has the very case."""

import pytest

from smmd_lightning.metrics import ClockMetrics, NumberMetrics
from smmd_lightning.types import NumericExample


def judged(metric, pairs):
    truths = [NumericExample(str(number), "?", truth) for number, (truth, _) in enumerate(pairs)]
    metric.update([answer for _, answer in pairs], truths)
    return {name: float(value) for name, value in metric.compute().items()}


@pytest.mark.parametrize(
    ("truth", "answer", "minutes"),
    [("12:59", "1:00", 1), ("11:59", "0:00", 1), ("0:00", "12:00", 0), ("3:00", "9:00", 360), ("11:00", "1:00", 120)],
)
def test_errors_go_the_shorter_way_round_the_dial(truth, answer, minutes):
    found = judged(ClockMetrics(), [(truth, answer)])
    assert found["mean_error_minutes"] == minutes
    assert found["parse_failures"] == 0


def test_an_answer_without_a_number_is_a_counted_miss_and_of_several_the_last_counts():
    found = judged(NumberMetrics(), [("7", "I cannot tell."), ("7", "7"), ("7", "first 3, then 7"), ("7", "7 or 3")])
    assert found["exact_match"] == pytest.approx(2 / 4)
    assert found["parse_failures"] == pytest.approx(1 / 4)
