import math

import pytest
import torch

from smmd_lightning.answers import TimeOfDay, parse_time
from smmd_lightning.report.clock_plots import MISTAKES, minutes_off, mistake
from smmd_lightning.report.judged import (
    bootstrap,
    digit_confusion,
    groups,
    judge_rows,
    share_within,
    wilson,
)


def test_wilson_interval_solves_its_defining_equation():
    # The edges are the shares p at which the observed one lies exactly 1.96 standard errors away.
    for hits, total in ((0, 7), (3, 10), (50, 200), (9, 9)):
        for edge in wilson(hits, total):
            if 1e-9 < edge < 1 - 1e-9:
                distance = abs(hits / total - edge) / math.sqrt(edge * (1 - edge) / total)
                assert distance == pytest.approx(1.959964, rel=1e-6)
    assert wilson(0, 7)[0] == 0
    assert wilson(9, 9)[1] == 1
    assert wilson(0, 0) == (0, 1)


def test_bootstrap_of_a_mean_agrees_with_its_standard_error():
    table_NC = torch.randn(400, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = bootstrap(table_NC, lambda table: {"mean": table.mean()}, resamples=2000)["mean"]
    error = table_NC.std().item() / 20
    assert found.value == table_NC.mean().item()
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.15 * error)


def test_tolerances_count_unread_answers_as_wrong():
    shares = share_within([0, 0.05, 0.051, math.inf], [0, 0.05, 1])
    assert [share.value for share in shares] == [0.25, 0.5, 0.75]
    assert all(share.low <= share.value <= share.high for share in shares)


def test_digits_are_compared_from_the_right():
    counts = digit_confusion([("345", "1345"), ("12", "13"), ("7", "")])
    assert counts[0] == {("5", "5"): 1, ("2", "3"): 1, ("7", "–"): 1}
    assert counts[2] == {("3", "3"): 1}


def test_groups_leave_out_what_is_alike_or_different_everywhere():
    rows = [{"meta": {"hour": 10 - n % 3, "same": 1, "own": f"{n}", "dial": [0.5], "task": n % 2}} for n in range(30)]
    assert groups(rows) == {
        "hour": {"8": list(range(2, 30, 3)), "9": list(range(1, 30, 3)), "10": list(range(0, 30, 3))}
    }


@pytest.mark.parametrize(
    ("truth", "read", "off"),
    [
        ("01:00", "12:59", -1),
        ("12:59", "1:00", 1),
        ("12:00", "06:00", 360),
        ("03:05", "15:05", 0),
        ("11:50", "0:10", 20),
    ],
)
def test_signed_error_goes_the_shorter_way_round(truth, read, off):
    assert minutes_off(parse_time(read), parse_time(truth)) == off


def test_signed_error_has_the_size_that_the_metric_gives():
    from smmd_lightning.metrics.functional.clock import circular_error_minutes

    times = [TimeOfDay(hour, minute) for hour in (0, 1, 5, 12, 23) for minute in (0, 7, 59)]
    for read in times:
        for truth in times:
            assert abs(minutes_off(read, truth)) == circular_error_minutes(read, truth)


@pytest.mark.parametrize(
    ("truth", "read", "name"),
    [
        ("03:05", "03:05", "right"),
        ("03:05", "03:09", "up to 5 minutes off"),
        ("12:58", "01:02", "up to 5 minutes off"),
        ("03:05", "04:05", "one hour off"),
        ("03:05", "08:05", "wrong hour, minute right"),
        ("03:05", "03:35", "hour right, minute wrong"),
        ("03:50", "10:19", "hands swapped"),
        ("12:30", "06:02", "hands swapped"),
        ("03:05", "08:31", "both wrong"),
        ("03:05", None, "no time read"),
    ],
)
def test_mistakes_are_named(truth, read, name):
    assert mistake({"truth": truth, "parsed": read}) == name
    assert name in MISTAKES


def test_what_the_page_shows_of_an_answer_follows_the_present_rules_and_not_the_file():
    row = {"id": "a", "task": "math", "truth": "12%", "raw": "0.12", "parsed": "stale", "error": 9.0, "correct": False}
    (judged,) = judge_rows("math", [row]).rows
    assert (judged["parsed"], judged["error"], judged["correct"], judged["id"]) == ("0.12", 0.0, True, "a")


def test_digits_are_compared_place_by_place_from_the_point():
    counts = digit_confusion([("6.4", "6"), ("6.4", "16.41"), ("0.25", "0.52")])
    assert counts == {
        -2: {("5", "2"): 1},
        -1: {("4", "0"): 1, ("4", "4"): 1, ("2", "5"): 1},
        0: {("6", "6"): 2, ("0", "0"): 1},
    }


@pytest.mark.parametrize("task", ["clock", "chart", "math"])
def test_intervals_agree_with_the_metrics_of_the_run(tmp_path, write_run, task):
    from smmd_lightning.metrics import metrics_for
    from smmd_lightning.report.run import read_run
    from smmd_lightning.types import NumericExample

    rows = read_run(write_run(tmp_path / "run", [task], count=80, training=False)).answers
    metrics = metrics_for(task)
    metrics.update(
        [row["raw"] for row in rows], [NumericExample("", "", row["truth"], meta=row["meta"]) for row in rows]
    )
    judged = judge_rows(task, rows)
    for name, value in metrics.compute().items():
        if name in judged.intervals:
            assert judged.intervals[name].value == pytest.approx(value.item(), nan_ok=True)
            if "error" not in name:
                assert judged.intervals[name].low <= value.item() <= judged.intervals[name].high
    assert len(judged.intervals) >= 4
