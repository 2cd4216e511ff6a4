"""Likely mistakes: different from the right answer, written like it, and of the kinds that models make."""

import pytest

from datamodules import DrawnArithmetic, DrawnClocks, DrawnInstruments, NearMissPairs
from datamodules.preferences import near_misses
from smmd_lightning.answers import parse_number, parse_time
from smmd_lightning.types import NumericExample

SOURCES = {
    "clock": DrawnClocks(image_size=32, train_size=40).open("train", seed=0, answer_format="HH:MM", prompts=None),
    "instrument": DrawnInstruments(image_size=32, train_size=60).open("train", seed=0),
    "math": DrawnArithmetic(train_size=40).open("train", seed=0),
}


@pytest.mark.parametrize("name", SOURCES)
def test_mistakes_are_readable_and_wrong(name):
    pairs = NearMissPairs(SOURCES[name], seed=1)
    for row in pairs.rows():
        right, wrong = row["chosen"][0]["content"], row["rejected"][0]["content"]
        assert right != wrong
        assert row["prompt"][0]["role"] == "user"
        if ":" in right:
            assert parse_time(wrong) is not None
            assert parse_time(wrong) != parse_time(right)
        else:
            assert parse_number(wrong) is not None
            assert parse_number(wrong) != parse_number(right)
    assert [row["rejected"] for row in pairs.rows(5)] == [
        row["rejected"] for row in NearMissPairs(SOURCES[name], 1).rows(5)
    ]


def test_swapped_hands_are_the_other_time_that_the_hands_could_mean():
    def swapped(answer):
        found = near_misses(NumericExample("a", "", answer, meta={"task": "clock"}))
        return dict(found)["hands swapped"]

    assert swapped("03:00") == "12:15"
    assert swapped("06:30") == "06:32"
    assert swapped("12:45") == "09:04"


def test_numbers_keep_what_stands_around_them():
    found = near_misses(NumericExample("a", "", "48 + 24 = 72\n#### 1,072", meta={"task": "math"}))
    assert ("one off", "48 + 24 = 72\n#### 1073") in found
    assert ("digits swapped", "48 + 24 = 72\n#### 0,172") in found


def test_kinds_can_be_chosen_and_a_missing_one_is_named():
    pairs = NearMissPairs(SOURCES["clock"], kinds=["hour off"])
    assert {row["mistake"] for row in pairs.rows()} == {"hour off"}
    with pytest.raises(ValueError, match="has no mistake of the kinds"):
        NearMissPairs(SOURCES["math"], kinds=["hour off"]).row(0)
    with pytest.raises(ValueError, match="must be a time"):
        near_misses(NumericExample("a", "", "noonish", meta={"task": "clock"}))
