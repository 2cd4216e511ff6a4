"""Readings of instruments: parts of the scale, ticks, units."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest

from smmd_lightning.metrics import InstrumentMetrics
from smmd_lightning.metrics.functional.instrument import InstrumentTruth, instrument_readings, judge_instrument, unit_of
from smmd_lightning.types import NumericExample

BAR = InstrumentTruth(Decimal("4.3"), Decimal("0.2"), Decimal(10), "bar")


def example(truth="4.3", **facts):
    facts = {"task": "instrument", "value": truth, "tick": "0.2", "scale": ["0", "10"], "unit": "bar"} | facts
    return NumericExample("a", "", f"{truth} bar", meta=facts)


@pytest.mark.parametrize(
    ("text", "unit", "named"),
    [
        ("4.3 bar", "bar", True),
        ("4.3bar.", "bar", True),
        ("It shows 20 degrees Celsius", "°C", True),
        ("20 °C", "°C", True),
        ("20C", "°C", True),
        ("20 °F", "°C", False),
        ("20 mV", "V", False),
        ("20 MV", "mV", False),
        ("20 volts", "V", True),
        ("3 mm/m", "mm/m", True),
        ("3 mm/m", "mm", False),
        ("12 m^3", "m³", True),
        ("12 m³", "m³", True),
        ("12 m", "m³", False),
        ("45 percent", "%", True),
        ("45", "%", False),
        ("90 miles per hour", "mph", True),
        ('3.5"', "in", True),
        ("bar", "bar", False),
    ],
)
def test_units_in_the_ways_people_write_them(text, unit, named):
    assert unit_of(text, unit) is named


@pytest.mark.parametrize(
    ("text", "exact", "tick", "unit", "error"),
    [
        ("4.3 bar", 1, 1, 1, 0.0),
        ("4.3", 1, 1, 0, 0.0),
        ("4.4 bar", 0, 1, 1, 0.01),
        ("4.5 bar", 0, 0, 1, 0.02),
        ("62 psi", 0, 0, 0, 1.0),
        ("I cannot tell", 0, 0, 0, 1.0),
        ("9" * 31 + " bar", 0, 0, 1, 1.0),
    ],
)
def test_one_answer(text, exact, tick, unit, error):
    row = judge_instrument(text, BAR).row
    assert row[:3] == (exact, tick, unit)
    assert row[3] == pytest.approx(error)


def test_a_unit_is_no_scale_word():
    litres = InstrumentTruth(Decimal("2.5"), Decimal("0.1"), Decimal(5), "MPa")
    assert judge_instrument("2.5 MPa", litres).score.correct
    assert judge_instrument("3 m", InstrumentTruth(Decimal(3), Decimal(1), Decimal(5), "m")).score.correct


def test_on_a_compass_the_shorter_way_counts():
    north = InstrumentTruth(Decimal(2), Decimal(5), Decimal(360), "°", period=Decimal(360))
    assert judge_instrument("358°", north).row[3] == pytest.approx(4 / 360)
    assert judge_instrument("362°", north).row[1] == 1.0
    assert judge_instrument("182°", north).row[3] == 0.5


def test_summaries_equal_a_slow_count():
    rng = random.Random(5)
    truths, texts, errors, ticks, units = [], [], [], [], []
    for _ in range(300):
        span, tick = rng.choice([(10, "0.2"), (100, "2"), (360, "5")])
        value = Decimal(rng.randrange(span * 10)) / 10
        truth = InstrumentTruth(value, Decimal(tick), Decimal(span), "V", unit_asked=rng.random() < 0.8)
        said = value + Decimal(rng.randrange(-40, 41)) / 10
        with_unit, readable = rng.random() < 0.5, rng.random() < 0.9
        texts.append(f"{said}{' V' if with_unit else ''}" if readable else "no idea")
        truths.append(truth)
        errors.append(min(1.0, float(abs(said - value)) / span) if readable else 1.0)
        ticks.append(readable and abs(said - value) <= Decimal(tick) / 2)
        units.append((readable and with_unit) if truth.unit_asked else None)
    values = {name: value.item() for name, value in instrument_readings(texts, truths).items()}
    assert values["mean_scale_error"] == pytest.approx(100 * sum(errors) / 300, rel=1e-5)
    assert values["median_scale_error"] == pytest.approx(100 * sum(sorted(errors)[149:151]) / 2, rel=1e-5)
    assert values["within_tick"] == pytest.approx(sum(ticks) / 300)
    asked = [unit for unit in units if unit is not None]
    assert values["unit_accuracy"] == pytest.approx(sum(asked) / len(asked))
    both = [tick and unit for tick, unit in zip(ticks, units, strict=True) if unit is not None]
    assert values["within_tick_and_unit"] == pytest.approx(sum(both) / len(both))
    assert values["within_2_percent_of_scale"] == pytest.approx(sum(error <= 0.02 + 1e-9 for error in errors) / 300)


def test_the_class_equals_its_functional_twin_and_knows_kinds():
    metrics = InstrumentMetrics()
    metrics.update(["4.4 bar", "no"], [example(kind="pressure_gauge"), example(kind="fuel_gauge")])
    values, twin = metrics.compute(), instrument_readings(["4.4 bar", "no"], [BAR, BAR])
    assert all(values[name].item() == twin[name].item() for name in twin)
    assert values["by_kind/pressure_gauge/within_tick"].item() == 1.0
    assert math.isclose(values["by_kind/fuel_gauge/median_scale_error"].item(), 100.0)


@pytest.mark.parametrize(
    "facts", [{"scale": ["10", "10"]}, {"scale": None}, {"tick": "wide"}, {"value": "nan"}, {"scale": ["0", "inf"]}]
)
def test_facts_that_describe_no_scale_are_refused(facts):
    with pytest.raises(ValueError, match="scale"):
        InstrumentMetrics().judge("1", example(**facts))
