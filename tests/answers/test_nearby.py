"""Laws over answers: which answers are near, with which mass, and how they are written."""

import math
import random

import pytest

from smmd_lightning.answers.nearby import MOST, AnswerLaw


def likely(law: AnswerLaw, text: str) -> list[str]:
    return [answer for answer, mass in law.near(text) if mass > 0.01]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("9", ["7", "8", "9", "10", "11"]),
        ("100", ["98", "99", "100", "101", "102"]),
        ("0", ["0", "1", "2"]),
        ("-1", ["-3", "-2", "-1"]),
        ("0.30", ["0.28", "0.29", "0.30", "0.31", "0.32"]),
        ("9.9", ["9.7", "9.8", "9.9", "10.0", "10.1"]),
        ("009", ["007", "008", "009", "010", "011"]),
        ("12:59", ["12:57", "12:58", "12:59", "01:00", "01:01"]),
        ("9:59", ["9:57", "9:58", "9:59", "10:00", "10:01"]),
        ("23:59", ["23:57", "23:58", "23:59", "00:00", "00:01"]),
        ("01:00:00", ["12:59:58", "12:59:59", "01:00:00", "01:00:01", "01:00:02"]),
    ],
)
def test_answers_near(text, answers):
    assert likely(AnswerLaw(), text) == answers


def test_settings_change_how_answers_are_written():
    assert likely(AnswerLaw(signed=True), "0") == ["-2", "-1", "0", "1", "2"]
    assert likely(AnswerLaw(signed=True), "-0.1") == ["-0.3", "-0.2", "-0.1", "0.0", "0.1"]
    assert likely(AnswerLaw(period=360), "359") == ["357", "358", "359", "0", "1"]
    assert likely(AnswerLaw(hour_digits=1), "10:00") == ["9:58", "9:59", "10:00", "10:01", "10:02"]
    assert likely(AnswerLaw(hours=24), "11:59") == ["11:57", "11:58", "11:59", "12:00", "12:01"]
    assert likely(AnswerLaw(hours=24), "12:59")[-2:] == ["13:00", "13:01"]
    assert likely(AnswerLaw(), "11:59")[-2:] == ["12:00", "12:01"]


@pytest.mark.parametrize("shape", ["gaussian", "laplace"])
@pytest.mark.parametrize(("unit", "width"), [("last_place", 2.0), ("value", 0.02), ("relative", 0.01)])
def test_masses_are_those_of_the_formula(shape, unit, width):
    pairs = dict(AnswerLaw(shape, (width, 3 * width), unit).near("2.00"))  # width 2 and 6 in hundredths

    def kernel(distance):
        widths = (2.0, 6.0)
        if shape == "laplace":
            return sum(math.exp(-distance / w) for w in widths)
        return sum(math.exp(-((distance / w) ** 2) / 2) for w in widths)

    expected = {f"{hundredths / 100:.2f}": kernel(abs(hundredths - 200)) for hundredths in range(1001)}
    total = sum(expected.values())
    for text, weight in expected.items():
        assert pairs.get(text, 0.0) == pytest.approx(weight / total, rel=1e-6, abs=2e-8), text
    assert sum(pairs.values()) == pytest.approx(1, rel=1e-12)


def test_a_very_wide_law_keeps_the_true_answer_and_stays_bounded():
    pairs = AnswerLaw(unit="relative", widths=(0.5,)).near("123456789")
    assert len(pairs) <= MOST
    assert max(pairs, key=lambda pair: pair[1])[0] == "123456789"
    circle = AnswerLaw(period=10, widths=(50,)).near("3")
    assert sorted(answer for answer, _ in circle) == [str(digit) for digit in range(10)]


def test_a_dial_counts_each_answer_once():
    answers = [answer for answer, _ in AnswerLaw(widths=(500,)).near("06:30")]
    assert len(answers) == len(set(answers)) == 720


def test_draws_follow_the_law():
    law, random_ = AnswerLaw(), random.Random(0)
    drawn = [law.draw("9", random_) for _ in range(4000)]
    share = drawn.count("9") / len(drawn)
    mass = dict(law.near("9"))["9"]
    assert abs(share - mass) < 4 * math.sqrt(mass * (1 - mass) / len(drawn))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": "box"}, "shape must be one of gaussian, laplace, got 'box'"),
        ({"unit": "minute"}, "unit must be one of"),
        ({"widths": ()}, "widths must be one or more numbers"),
        ({"widths": (math.nan,)}, "widths must be one or more numbers .*nan"),
        ({"hours": 6}, "hours must be one of 12, 24, got 6"),
        ({"period": math.nan}, "period must be a number .* got nan"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        AnswerLaw(**settings)


@pytest.mark.parametrize("text", ["", "noon", "1,005", "24:00", "1.", "1e5"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="time"):
        AnswerLaw().near(text)
