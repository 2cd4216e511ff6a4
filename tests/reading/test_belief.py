import itertools

import pytest

from smmd_lightning.reading.belief import alternatives, interval
from smmd_lightning.reading.values import value_and_unit, value_interval


def belief(written, share=1.0, **values):
    return {"written": written, "share": share, "values": [[float(value[1:]), p] for value, p in values.items()]}


def test_departures_have_the_probability_of_the_chain_rule():
    """Against a table of all two-digit answers of a model whose second digit depends on the first."""
    first = {4: 0.7, 5: 0.3}
    second = {4: {1: 0.1, 2: 0.9}, 5: {7: 1.0}}
    exact = {f"{a}{b}": first[a] * second[a][b] for a in first for b in second[a]}
    found = dict(alternatives("42", [belief("4", _4=0.7, _5=0.3), belief("2", _1=0.1, _2=0.9)]))
    assert found["42"] == pytest.approx(exact["42"])
    assert found["41"] == pytest.approx(exact["41"])
    assert found["52"] == pytest.approx(exact["57"])  # what follows another first digit is not asked
    assert sum(found.values()) == pytest.approx(1)


def test_probability_of_other_tokens_belongs_to_no_answer():
    found = alternatives("7 V", [belief("7", share=0.8, _7=0.5, _8=0.5)])
    assert found == [("7 V", 0.4), ("8 V", 0.4)]


def test_tokens_are_found_in_reading_order_and_zeros_stay():
    answers = dict(alternatives("05:05", [belief("05", _5=1.0), belief("05", _5=0.5, _6=0.5)]))
    assert answers == {"05:05": 0.5, "05:06": 0.5}
    assert alternatives("no number", []) == [("no number", 1.0)]


def test_the_interval_holds_its_share_whatever_the_order():
    answers = [("10", 0.03), ("11", 0.5), ("12", 0.43), ("99", 0.04), ("none", 0.5)]

    def measure(text):
        return None if text == "none" else float(text)

    for order in itertools.permutations(answers):
        assert interval(order, measure) == (11.0, 12.0)
    assert interval(answers, measure, cover=0.99) == (10.0, 99.0)
    assert interval([("none", 1.0)], measure) is None


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
