"""Times of day in text: read as a person would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.answers import TimeOfDay, find_times, parse_time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("3:05", (3, 5)),
        ("03:05", (3, 5)),
        ("3:05 PM", (15, 5)),
        ("3:05pm.", (15, 5)),
        ("12:05 a.m.", (0, 5)),
        ("12:05 p.m.", (12, 5)),
        ("15:05", (15, 5)),
        ("15:05 PM", (15, 5)),
        ("24:00", (0, 0)),
        ("3.05", (3, 5)),
        ("3h05", (3, 5)),
        ("3 : 05", (3, 5)),
        ("３：０５", (3, 5)),
        ("03:05:30", (3, 5, 30)),
        ("3:05:30.25 pm", (15, 5, 30)),
        ("2021-05-12T03:05:30Z", (3, 5, 30)),
        ('{"minute": 5, "hour": 3}', (3, 5)),
        ('{"h": 3, "m": 5}', (3, 5)),
        ('{"hour": 3, "minute": 5, "second": 30}', (3, 5, 30)),
        ('{"second": 30, "minute": 5, "hour": 3}', (3, 5, 30)),
        ('{"minute": 5, "hour": 3, "second": 30}', (3, 5, 30)),
        ("3:05 on a dial from 1 to 12", (3, 5)),
        ("five past three", (3, 5)),
        ("Five minutes past three.", (3, 5)),
        ("half past 12", (12, 30)),
        ("quarter to 1", (12, 45)),
        ("a quarter past four", (4, 15)),
        ("quarter to noon", (11, 45)),
        ("quarter to midnight", (23, 45)),
        ("twenty-five to eight", (7, 35)),
        ("twenty five past eleven", (11, 25)),
        ("10 past 3 o'clock", (3, 10)),
        ("5 to 8 pm", (19, 55)),
        ("3 o'clock", (3, 0)),
        ("three o’clock", (3, 0)),
        ("3 PM", (15, 0)),
        ("ten thirty", (10, 30)),
        ("three oh five", (3, 5)),
        ("twelve forty-five", (12, 45)),
        ("noon", (12, 0)),
        ("midnight", (0, 0)),
        ('{"hour": 3, "minute": 5}', (3, 5)),
        ('{\n    "hour": 3,\n    "minute": 5,\n    "second": 30\n}', (3, 5, 30)),
        ("{'hour': '03', 'minute': '05'}", (3, 5)),
        ("Hour: 3, Minute: 5", (3, 5)),
        ("3 hours and 5 minutes", (3, 5)),
        ("3 h 5 min 30 s", (3, 5, 30)),
        ("3 h 05", (3, 5)),
        ("half-past three", (3, 30)),
        ("quarter-past four", (4, 15)),
        ("five-past-three", (3, 5)),
        ("15 min past 3", (3, 15)),
        ("15 min. past 3", (3, 15)),
        ("2021-05-12T03:05:30+02:00", (3, 5, 30)),
        ("2021-05-12T03:05-05:00", (3, 5)),
        ("2021-05-12 03:05:30.25-0500", (3, 5, 30)),
        ("03:05:30+02:00", (3, 5, 30)),
        ("<think>4:10? No.</think>3:05", (3, 5)),
    ],
)
def test_one_time_is_read_as_a_person_would(text, time):
    assert parse_time(text) == TimeOfDay(*time)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "25:61",
        "3:75",
        "12:60",
        "24:01",
        "3:05:99",
        "125:30",
        "3:055",
        "no idea",
        "5 of 10",
        "five",
        "1.2.34",
        "the third",
    ],
)
def test_what_cannot_be_a_time_gives_none(text):
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "marked", "last", "first"),
    [
        ("It might be 3:05. No, 4:10.", "04:10", "04:10", "03:05"),
        ("The answer is 3:05. At 4:10 the hand would be lower.", "03:05", "04:10", "03:05"),
        ("3:05-4:10", "04:10", "04:10", "03:05"),
        ("25:61 or 3:05", "03:05", "03:05", "03:05"),
        ("It was 2:00.\n#### 3:05\nNot 4:10.", "03:05", "04:10", "02:00"),
    ],
)
def test_the_rule_says_which_of_several_times_counts(text, marked, last, first):
    assert [str(parse_time(text, rule)) for rule in ("marked", "last", "first")] == [marked, last, first]


def test_no_time_is_read_inside_another():
    assert len(find_times("10 past 3 o'clock; 03:05:30 PM; half past 12; 3 hours 5 minutes")) == 4


@given(st.integers(0, 23), st.integers(0, 59), st.one_of(st.none(), st.integers(0, 59)))
def test_any_time_survives_being_written(hour, minute, second):
    time = TimeOfDay(hour, minute, second)
    assert parse_time(f"The clock shows {time}.") == time
    assert parse_time(str(time).lstrip("0") if hour else str(time)) == time


@given(st.integers(1, 12), st.integers(1, 59))
def test_minutes_to_and_past_an_hour_are_opposite(hour, minute):
    past, to = parse_time(f"{minute} past {hour}"), parse_time(f"{60 - minute} to {hour % 12 + 1}")
    assert past == to == TimeOfDay(hour, minute)
