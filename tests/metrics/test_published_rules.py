"""Rules of published benchmarks against slow oracles, written from each rule's definition, on random answers."""

import json
import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.functional.anls import anls
from smmd_lightning.metrics.functional.chartqapro import chartqapro_score, judge_chartqapro
from smmd_lightning.metrics.functional.clockbench import judge_clockbench, matches, read_json
from smmd_lightning.metrics.functional.its_about_time import judge_wild_clock
from smmd_lightning.metrics.functional.measurebench import judge_measurement, numbers_in
from smmd_lightning.metrics.functional.ticktock import judge_ticktock, swapped_times
from smmd_lightning.types import NumericExample

PAIRS = 2000


# -- MeasureBench: the value inside the interval, the unit somewhere in the answer --------------------------------


def measure_oracle(value, unit_said, interval, units):
    number = interval[0] <= value <= interval[1]
    unit = any(name.lower() in unit_said.lower() for name in units)
    return number and (unit or not units), number, unit if units else None


def test_measurebench_equals_its_definition_on_random_answers():
    dice = random.Random(1)
    units = {"bar": ["bar", "Bars"], "°C": ["°C", "℃", "degrees celsius"], "km/h": ["km/h", "kph"], "": []}
    for _ in range(PAIRS):
        names = dice.choice(list(units.values()))
        low = dice.choice([dice.randint(-20, 20), round(dice.uniform(-5, 5), 2)])
        high = low + dice.choice([0, 1, 0.25, 3])
        value = dice.choice([low, high, round(dice.uniform(low - 2, high + 2), 2), dice.randint(-25, 25)])
        unit = dice.choice([*names, "psi", ""]).upper() if dice.random() < 0.5 else dice.choice(["", *names])
        wrong = dice.choice(["", "I see 7 marks.\n", "First 3/4, then\n"])
        mark = dice.choice(["Answer: ", "答案：", "Answer ", "\\boxed{"])
        text = f"{wrong}{mark}{value} {unit}".rstrip() + ("}" if mark.startswith("\\") else "")
        row = judge_measurement(text, [[low, high]], [names]).row
        right, number, has_unit = measure_oracle(value, unit, (low, high), names)
        assert row[:2] == (right, number), text
        assert math.isnan(row[2]) if has_unit is None else row[2] == has_unit, text
        if not number:
            edges = [
                abs(Fraction(value) - Fraction(edge)) / abs(Fraction(edge) + Fraction(1, 10**6)) for edge in (low, high)
            ]
            assert row[3] == pytest.approx(float(min(edges)), rel=1e-9)


def test_measurebench_equals_its_definition_on_random_times():
    dice = random.Random(2)
    for _ in range(PAIRS):
        begin = dice.randrange(0, 12 * 3600, 60)
        end = begin + dice.choice([0, 60, 300])
        said = dice.choice([begin, end, dice.randrange(0, 24 * 3600), begin + 12 * 3600])
        clock = [f"{t // 3600:02d}:{t // 60 % 60:02d}:{t % 60:02d}" for t in (begin, end, said)]
        later = dice.choice(["", " (or 23:59)"])
        text = f"Answer: {clock[2]}{later}"
        one = judge_measurement(text, [clock[:2]], []).row
        assert one[0] == (begin <= said <= end)
        half_day = [[f"{(t + 12 * 3600) // 3600:02d}:{t // 60 % 60:02d}:{t % 60:02d}" for t in (begin, end)]]
        both = judge_measurement(text, [clock[:2], *half_day], [])
        assert both.score.correct == (begin <= said <= end or begin <= said - 12 * 3600 <= end)


def test_oddities_of_measurebench_are_kept():
    assert numbers_in("9" * 5000 + "/3") == []
    assert numbers_in("3/0 and 1 / 4, .5, 2., -7, u5, x6") == [0.25, 0.5, 2.0, -7.0, 6.0]
    assert judge_measurement("Answer 4 Answer: 5 bar", [[5, 5]], [["bar"]]).row[0] == 1
    assert judge_measurement("5 bar, of a scale to 10", [[5, 5]], [["bar"]]).row[0] == 0  # the last number counts
    assert judge_measurement("\\boxed{5} or 10 bar", [[5, 5]], [["bar"]]).row[:3] == (0, 1, 0)
    assert judge_measurement("5 µm", [[5, 5]], [["μm"]]).row[0] == 1
    assert math.isnan(judge_measurement("no idea", [[5, 5]], [["bar"]]).row[3])
    with pytest.raises(ValueError, match="needs an interval"):
        judge_measurement("5", [], [])


# -- ChartQAPro: by element; numbers within 5 %, years exact, words by ANLS ---------------------------------------


def distance_oracle(a, b):
    if not a or not b:
        return len(a) + len(b)
    same = distance_oracle(a[1:], b[1:])
    return same if a[0] == b[0] else 1 + min(same, distance_oracle(a[1:], b), distance_oracle(a, b[1:]))


def words_oracle(said, truth):
    longer = max(len(said), len(truth))
    share = Fraction(distance_oracle(said, truth), longer) if longer else Fraction(0)
    return float(1 - share) if share < Fraction(1, 2) else 0.0


def element_oracle(said, truth, year):
    if year:
        return float(said.lower() == truth.lower())
    said, truth = said.strip("%"), truth.strip("%")
    try:
        value, gold = Fraction(said), Fraction(truth)
    except ValueError:
        return words_oracle(said.lower(), truth.lower())
    return float(abs(value - gold) <= Fraction(5, 100) * abs(gold))


def test_chartqapro_equals_its_definition_on_random_answers():
    dice = random.Random(3)
    words = ["Spain", "spain", "Spane", "Peru", "Yes", "No", "ab", "ac", "blue"]

    def element():
        number = dice.choice([0, 100, 105, 106, 2010, 2011, 95, 94, 2.5])
        return dice.choice([f"{number}", f"{number}%", dice.choice(words)])

    for _ in range(PAIRS):
        truths = [element() for _ in range(dice.choice([1, 1, 1, 2, 3]))]
        said = [truth if dice.random() < 0.4 else element() for truth in truths]
        if len(truths) > 1:
            said += [element()] * (dice.random() < 0.2)
        years = [dice.choice(["YES", "NO"]) for _ in truths]
        shown = [items[0] if len(items) == 1 else str(items) for items in (said, truths)]
        close = sum(element_oracle(a, b, year == "YES") for a, b, year in zip(said, truths, years, strict=False))
        found = chartqapro_score(*shown, years)
        border = any("105" in item or "95" in item for item in said)  # 5 % exactly: floats decide
        assert found == pytest.approx(close / max(len(said), len(truths)), abs=1e-12) or border, (shown, years)
        kind = dice.choice(["Factoid", "Multi Choice", "Fact Checking", "Conversational", "Hypothetical"])
        row = judge_chartqapro(*shown, years, kind).row
        exact = sum(a.lower() == b.lower() for a, b in zip(said, truths, strict=False)) / max(len(said), len(truths))
        assert row[1] == (pytest.approx(exact) if kind in ("Multi Choice", "Fact Checking") else row[0])


def test_oddities_of_chartqapro_are_kept():
    assert chartqapro_score("0.0", "0") == 1
    assert chartqapro_score("0.01", "0") == 0
    assert chartqapro_score("105", "100") == 1
    assert chartqapro_score("100", "106") == 0  # 5 % of the truth
    assert chartqapro_score("Yes.", "Yes") == 1
    assert chartqapro_score("['a', 'b', 'c']", "['a', 'b']") == pytest.approx(2 / 3)
    assert chartqapro_score("['2010', '2011']", "[2010, 2011]", ["YES"]) == 1
    assert chartqapro_score("NewYork", "[New York]") == 1  # words of an element without quotes are joined
    assert chartqapro_score("ac", "ab") == 0  # half of the letters is not enough
    with pytest.raises(ValueError, match="years needs"):
        chartqapro_score("1", "1", [])


@given(st.text(max_size=8), st.text(max_size=8))
def test_anls_is_symmetric_between_0_and_1_and_1_of_the_same(first, second):
    assert anls(first, second) == anls(second, first)
    assert 0 <= anls(first, second) <= 1
    assert anls(first, first) == 1


# -- clocks -------------------------------------------------------------------------------------------------------


def test_its_about_time_equals_its_definition_on_random_times():
    dice = random.Random(4)
    for _ in range(PAIRS):
        truth = dice.randrange(720)
        said = (truth + dice.choice([0, 1, -1, 2, 59, 60, 719, dice.randrange(720)])) % 720
        texts = [f"{t // 60 or 12}:{t % 60:02d}" for t in (said, truth)]
        apart, minutes = abs(said - truth), abs(said % 60 - truth % 60)
        expected = (apart <= 1 or apart == 719, said // 60 == truth // 60, minutes <= 1 or minutes == 59, 0)
        assert judge_wild_clock(*texts).row == expected
    assert judge_wild_clock("no idea", "3:05").row == (0, 0, 0, 1)
    with pytest.raises(ValueError, match="must be a time of day"):
        judge_wild_clock("3:05", "soon")


def test_ticktock_equals_its_definition_on_random_times():
    dice = random.Random(5)
    for _ in range(PAIRS):
        hour, minute = dice.randrange(12), dice.randrange(60)
        # Angles in degrees from twelve; the hands exchanged, read as hour and minute.
        angles = Fraction(360 * (60 * hour + minute), 720), Fraction(360 * minute, 60)
        read_hour, read_minute = math.floor(angles[1] / 30) % 12, angles[0] / 6
        swapped = {(read_hour, math.floor(read_minute)), (read_hour, math.floor(read_minute + Fraction(1, 2)) % 60)}
        assert swapped_times(hour, minute) == swapped
        said = dice.choice(
            [(hour, minute), *swapped, (dice.randrange(12), dice.randrange(60)), (hour, (minute + 1) % 60)]
        )
        both = said == (hour, minute)
        exchanged = not both and said in swapped
        row = judge_ticktock(f"{said[0] or 12}:{said[1]:02d}", f"{hour + 12}:{minute:02d}").row
        assert row == (both, said[0] == hour, said[1] == minute, exchanged, both or exchanged, 0)


def clock_field(dice):
    """A right field, values that fit it, and values that do not."""
    low = dice.randrange(50)
    kind = dice.choice(["number", "range", "choice", "named", "word", "false"])
    if kind == "number":
        return low, [low, str(low), float(low), f" {low} "], [low + 1, True, None, "x", [low], f"{low}.0"]
    if kind == "range":
        return [low, low + 2], [low, low + 1, f"{low + 2}"], [low - 1, low + 3, None, "x"]
    if kind == "choice":
        return [low, low + 5, low + 9], [low, low + 5, f"{low + 9}"], [low + 1, None]
    if kind == "named":
        return {"a": low, "b": [low + 3, low + 5]}, [low, low + 4], [low + 1, low + 6, "x"]
    if kind == "word":
        return "Monday", ["monday", " MONDAY "], ["Mon", 1, None]
    return False, [False, 0], [True, 3, None, "false"]


def test_clockbench_equals_its_definition_on_random_answers():
    dice = random.Random(6)
    for _ in range(PAIRS):
        valid, said_valid = dice.random() < 0.7, dice.choice([True, True, True, False, None, "true", 1])
        truth, said, right = {"valid": valid}, {"valid": said_valid}, said_valid is valid
        for name in ("hours", "minutes", "seconds", "weekday"):
            truth[name], fitting, other = clock_field(dice)
            fits = dice.random() < 0.85
            said[name] = dice.choice(fitting if fits else other)
            right = right and (fits or not valid)
        text = json.dumps(said)
        text = dice.choice([text, f"```json\n{text}\n```", f"Here you are: {text} Thanks!", text.replace("}", ",}")])
        judged = judge_clockbench(text, truth)
        assert judged.score.correct == right, (text, truth)
        assert judged.row[0] == right
        assert math.isnan(judged.row[1]) is not valid
        assert math.isnan(judged.row[2]) is valid


def test_json_is_read_however_a_model_dresses_it():
    assert read_json("{valid: true, hours: 3}") == {"valid": True, "hours": 3}
    assert read_json("{'valid': False}") == {"valid": False}
    for nothing in ("", "no idea", "}{", "[1]", "{" * 100_000, '{"a": 1} and {b}', "{valid}"):
        assert read_json(nothing) is None, nothing[:20]
    assert judge_clockbench("12:05", {"valid": True}).row[4] == 1
    assert not matches(3, Decimal(3))


# -- the classes --------------------------------------------------------------------------------------------------

QUESTIONS = [
    ("measurebench", "Answer: 4.3 bar", "4.3 bar", {"intervals": [[4.2, 4.4]], "units": [["bar"]], "kind": "gauge"}),
    ("measurebench", "Answer: 9", "3", {"intervals": [[3, 3]], "units": [[]], "kind": "ruler"}),
    ("chartqapro", "Spain", "Spain", {"years": ["NO"], "kind": "Factoid"}),
    ("its_about_time", "11:59", "12:00", {}),
    ("ticktockvqa", "6:17", "3:30", {}),
    ("clockbench", '{"valid": false}', "{}", {"truth": {"valid": False}, "kind": "time"}),
]


def test_published_metrics_are_means_over_the_answers_they_are_defined_for():
    found = {}
    for task in dict.fromkeys(question[0] for question in QUESTIONS):
        metric = metrics_for(task)
        for name, said, truth, meta in QUESTIONS:
            if name == task:
                metric.update([said], [NumericExample("a", "", truth, meta={"task": task, **meta})])
        found[task] = {name: value.item() for name, value in metric.compute().items()}
    assert found["measurebench"]["accuracy"] == 0.5
    assert found["measurebench"]["unit_accuracy"] == 1  # only one answer had to name a unit
    assert found["measurebench"]["by_kind/ruler/accuracy"] == 0
    assert found["chartqapro"]["accuracy"] == 1
    assert found["its_about_time"]["accuracy"] == 1
    assert (found["ticktockvqa"]["accuracy"], found["ticktockvqa"]["swapped_hands"]) == (0, 1)
    assert found["clockbench"]["accuracy_invalid"] == 1
    assert math.isnan(found["clockbench"]["accuracy_valid"])


def test_a_question_that_lacks_a_fact_is_named():
    with pytest.raises(ValueError, match="Example 'a': a question of MeasureBench needs the fact 'intervals'"):
        metrics_for("measurebench").update(["5"], [NumericExample("a", "", "5", meta={"task": "measurebench"})])


@given(st.text(max_size=40))
def test_any_answer_is_judged_without_an_error(text):
    judge_measurement(text, [[0, 1]], [["bar"]])
    judge_measurement(text, [["3:00", "3:05"]], [])
    chartqapro_score(text, text[::-1])
    judge_clockbench(text, {"valid": True, "hours": 3})
    judge_wild_clock(text, "3:05")
    judge_ticktock(text, "3:05")
