"""Clock readings: the dial is a circle, and silence is a miss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.answers import TimeOfDay
from smmd_lightning.metrics import ClockMetrics
from smmd_lightning.metrics.functional import circular_error_minutes, clock_readings
from smmd_lightning.types import NumericExample

times = st.builds(TimeOfDay, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))


def by_walking(a: TimeOfDay, b: TimeOfDay, dial_hours: int) -> float:
    """Steps second by second both ways until the hands meet."""
    turn = dial_hours * 3600
    start, end, steps = a.seconds % turn, b.seconds % turn, 0
    while (start + steps) % turn != end and (start - steps) % turn != end:
        steps += 1
    return steps / 60


@pytest.mark.parametrize(
    ("prediction", "target", "minutes"),
    [
        ((12, 59), (1, 0), 1),
        ((11, 59), (0, 0), 1),
        ((15, 5), (3, 5), 0),
        ((9, 0), (3, 0), 360),
        ((3, 0, 30), (3, 0), 0.5),
    ],
)
def test_the_error_is_the_shorter_way_round(prediction, target, minutes):
    assert circular_error_minutes(TimeOfDay(*prediction), TimeOfDay(*target)) == minutes


@given(times, times)
def test_the_error_is_symmetric_and_at_most_half_a_turn(a, b):
    assert circular_error_minutes(a, b) == circular_error_minutes(b, a) <= 360
    assert circular_error_minutes(a, a) == 0


@pytest.mark.parametrize("dial_hours", [12, 24])
def test_the_error_is_what_walking_finds(dial_hours):
    pairs = [((0, 0, 0), (23, 59, 1)), ((5, 30, 15), (17, 31, 0)), ((11, 0, 0), (1, 0, 0)), ((3, 3, 3), (20, 4, 4))]
    for a, b in pairs:
        a, b = TimeOfDay(*a), TimeOfDay(*b)
        assert circular_error_minutes(a, b, dial_hours) == pytest.approx(by_walking(a, b, dial_hours))


def test_all_metrics_of_a_few_readings():
    truths = ["03:05", "12:59", "06:30", "10:10"]
    answers = ["five past three", "1:00", "6:36", "I cannot see the clock."]
    values = {name: value.item() for name, value in clock_readings(answers, truths).items()}
    assert values == pytest.approx(
        {
            "exact_match": 1 / 4,
            "mean_error_minutes": (0 + 1 + 6 + 360) / 4,
            "median_error_minutes": 3.5,
            "within_1_minute": 2 / 4,
            "within_5_minutes": 2 / 4,
            "hour_accuracy": 2 / 4,
            "minute_accuracy": 1 / 4,
            "parse_failures": 1 / 4,
        }
    )


def test_a_closer_reading_is_never_worse():
    errors = [
        clock_readings([answer], ["04:00"])["mean_error_minutes"].item() for answer in ("4:00", "3:59", "9:12", "???")
    ]
    assert errors == sorted(errors)
    assert errors[0] == 0
    assert errors[-1] == 360


@pytest.mark.parametrize(
    ("answer", "truth", "exact"),
    [
        ("3:05", "03:05:00", 1),
        ("3:05", "03:05:30", 0),
        ("3:05:30", "03:05:30", 1),
        ("3:05:30", "03:05", 1),
        ("15:05", "3:05", 1),
    ],
)
def test_seconds_matter_only_where_the_truth_has_them(answer, truth, exact):
    assert clock_readings([answer], [truth])["exact_match"].item() == exact


def test_a_dial_of_24_hours_tells_morning_from_afternoon():
    values = clock_readings(["3:05 AM"], ["15:05"], dial_hours=24)
    assert values["exact_match"].item() == 0
    assert values["mean_error_minutes"].item() == 720


def test_the_class_agrees_with_its_functional_twin():
    truths, answers = ["03:05", "12:59", "06:30"], ["3:06", "1:00", "-"]
    metric = ClockMetrics()
    for truth, answer in zip(truths, answers, strict=True):  # one by one, as batches do
        metric.update([answer], [NumericExample("a", "", truth)])
    values, twin = metric.compute(), clock_readings(answers, truths)
    assert values.pop("samples") == 3
    assert values == twin


def test_scores_say_what_was_read():
    score = ClockMetrics().score("It shows quarter to one.", NumericExample("a", "", "12:50"))
    assert (score.parsed, score.truth, score.error, score.correct) == ("12:45", "12:50", 5.0, False)
    score = ClockMetrics().score("25:61", NumericExample("a", "", "12:50"))
    assert (score.parsed, score.error, score.correct) == (None, None, False)


def test_a_truth_that_is_no_time_is_named():
    with pytest.raises(ValueError, match=r"Example 'train-3': .* got 'noonish'"):
        ClockMetrics().update(["3:05"], [NumericExample("train-3", "", "noonish")])


def test_wrong_settings_and_lengths_are_named():
    with pytest.raises(ValueError, match="dial_hours must be 12 or 24, got 10"):
        ClockMetrics(dial_hours=10)
    with pytest.raises(ValueError, match="Got 2 predictions for 0 examples"):
        ClockMetrics().update(["a", "b"], [])


def test_no_answer_at_all_gives_nan_and_not_an_error():
    metric = ClockMetrics()
    metric.update([], [])
    values = metric.compute()
    assert values["samples"] == 0
    assert all(math.isnan(value) for name, value in values.items() if name != "samples")
