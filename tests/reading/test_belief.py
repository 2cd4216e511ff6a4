import itertools

import pytest

from smmd_lightning.reading.belief import central_interval
from smmd_lightning.reading.values import value_and_unit, value_interval


def test_the_interval_holds_its_share_whatever_the_order():
    answers = [("10", 0.03), ("11", 0.5), ("12", 0.43), ("99", 0.04), ("none", 0.5)]

    def measure(text):
        return None if text == "none" else float(text)

    for order in itertools.permutations(answers):
        assert central_interval(order, measure) == (11.0, 12.0)
    assert central_interval(answers, measure, cover=0.99) == (10.0, 99.0)
    assert central_interval([("none", 1.0)], measure) is None


@pytest.mark.parametrize(
    ("text", "times", "found"),
    [
        ("4.08 A", False, ("4.08", "A")),
        ("The pressure is 20.8 psi.", False, ("20.8", "psi")),
        ("76 °F", False, ("76", "°F")),
        ("-3.5°C", False, ("-3.5", "°C")),
        ("60%", False, ("60", "%")),
        ("80 km/h", False, ("80", "km/h")),
        ("5", False, ("5", "")),
        ("no idea", False, (None, "")),
        ("3:05", True, ("03:05", "")),
        ("no idea", True, (None, "")),
    ],
)
def test_value_and_unit(text, times, found):
    assert value_and_unit(text, times) == found


def test_intervals_of_times_go_round_the_dial():
    answers = [("12:59", 0.5), ("01:01", 0.4), ("12:57", 0.1)]
    assert value_interval("12:59", answers, times=True) == ("12:57", "01:01")
    assert value_interval("4.5", [("4.5", 0.5), ("4.6", 0.3), ("5.5", 0.2)], times=False) == ("4.5", "5.5")
    assert value_interval("nothing", [("nothing", 1.0)], times=True) is None
