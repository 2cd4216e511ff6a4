"""The page holds up whatever a run's files say, and follows the present rules."""

import json
import re

import pytest

from smmd_lightning.metrics.functional.instrument import COLUMNS
from smmd_lightning.report import read_run, write_report
from smmd_lightning.report.error_bars import bins, errors
from smmd_lightning.report.instrument_plots import EDGES, on_scale, overlay, share_of_scale
from smmd_lightning.report.judged import judge_rows


def data_of(page):
    return json.loads(re.search(r'id="answers">(.*?)</script>', page, re.S)[1], parse_constant=pytest.fail)


def rows_of(run):
    return [json.loads(line) for line in (run / "predictions.jsonl").read_text("utf-8").splitlines()]


def write_rows(run, rows):
    (run / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.mark.parametrize(
    "config",
    [
        "model: smmd_lightning.module.SMMDModule\n",
        "model: {backbone: LanguageBackbone, numeric_loss: SMMDLoss}\n",
        "model: {backbone: {class_path: LanguageBackbone, init_args: tiny}}\n",
        "- a list\n",
        "model: {backbone: ",
    ],
)
def test_a_config_of_another_form_leaves_a_page(tmp_path, write_run, config):
    run = write_run(tmp_path / "run", count=9)
    (run / "config.yaml").write_text(config)
    assert "<h1>run</h1>" in write_report(run).read_text("utf-8")


@pytest.mark.parametrize(
    "odd",
    [
        {"image": "images/a\0b.png"},
        {"raw": "lone \udc80 surrogate", "id": "\udcff"},
        {"error": float("inf")},
        {"truth": float("nan")},
        {"meta": "text"},
        {"meta": None, "error": float("nan")},
    ],
    ids=lambda odd: "+".join(odd),
)
def test_odd_values_in_a_row_leave_a_page(tmp_path, write_run, odd):
    run = write_run(tmp_path / "run", count=9, training=False)
    rows = rows_of(run)
    rows[0] |= odd
    write_rows(run, rows)
    page = write_report(run).read_text("utf-8")
    assert len(data_of(page)) == 9


def test_metrics_without_a_value_are_left_out(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=9)
    (run / "metrics.json").write_text('{"test/exact_match": null, "test/samples": 9}')
    assert read_run(run).metrics == {"test/samples": 9.0}


def test_answers_are_judged_by_the_present_rules(tmp_path, write_run):
    run = write_run(tmp_path / "run", count=9, training=False)
    rows = rows_of(run)
    for number, row in enumerate(rows):
        row |= {"truth": "03:05", "raw": "3:05" if number < 4 else "4:05", "correct": number >= 6, "parsed": "?"}
    write_rows(run, rows)
    page = write_report(run).read_text("utf-8")
    assert [row["correct"] for row in data_of(page)] == [True] * 4 + [False] * 5
    assert {row["parsed"] for row in data_of(page)} == {"03:05", "04:05"}
    assert "7 of 9 answers are judged otherwise here" in page


def test_samples_come_before_plots_and_the_contents_name_every_section(tmp_path, write_run):
    page = write_report(write_run(tmp_path / "run", ["clock", "instrument"], count=30)).read_text("utf-8")
    named = re.findall(r'<section id="([^"]+)"><h2>([^<]+)</h2>', page)
    listed = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', page)
    assert listed == named
    keys = [key for key, _ in named]
    assert len(set(keys)) == len(keys)
    assert keys[:3] == ["results", "clocks-samples", "instruments-samples"]


@pytest.mark.parametrize("task", ["clock", "chart", "math", "instrument"])
def test_each_bar_of_the_error_plot_opens_its_answers(tmp_path, write_run, task):
    run = write_run(tmp_path / "run", ["math", task] if task != "math" else ["math"], count=40, training=False)
    page = write_report(run).read_text("utf-8")
    plots = re.findall(r"<figcaption>Error of the answers</figcaption>(.*?)</figure>", page, re.S)
    bars = re.findall(r'data-rows="([\d,]+)">.*?<title>([^<]*); (\d+) answers', plots[-1], re.S)
    rows = read_run(run).answers
    opened = [[int(part) for part in places.split(",")] for places, _, _ in bars]
    assert [len(places) for places in opened] == [int(count) for _, _, count in bars]
    everything = sorted(place for places in opened for place in places)
    assert len(set(everything)) == len(everything)
    assert {rows[place]["task"] for place in everything} == {task}
    unread = {
        place for places, (_, name, _) in zip(opened, bars, strict=True) if name == "nothing read" for place in places
    }
    assert unread == {place for place in everything if rows[place]["parsed"] is None}


def test_bins_hold_what_is_at_most_their_edge_in_single_precision():
    assert bins([0.0, 0.05000000074505806, 0.0501, 0.2, 7.0], [0, 0.05, 0.2]) == [[0], [1], [2, 3], [4], []]


def test_an_instruments_error_is_in_parts_of_the_scale(tmp_path, write_run):
    run = write_run(tmp_path / "run", ["instrument"], count=30, training=False)
    judged = judge_rows("instrument", read_run(run).answers)
    for row, error in zip(judged.rows, errors(judged), strict=True):
        truth, read = share_of_scale(row["meta"]["value"], row["meta"]), share_of_scale(row["parsed"], row["meta"])
        if read is not None:
            assert error == pytest.approx(100 * min(abs(read - truth), 1), rel=1e-5, abs=1e-5)
    assert judged.table_NC.shape == (30, len(COLUMNS))
    assert len(EDGES) == 8


def test_a_needle_points_at_the_place_of_the_reading():
    meta = {"scale": ["0", "10"], "scale_points": [[0.1, 0.5], [0.5, 0.1], [0.9, 0.5]], "pivot": [0.5, 0.5]}
    shown = overlay({"truth": "2 bar", "parsed": "5", "meta": meta}, "data:image/png;base64,")
    assert 'x1="50.0" y1="50.0" x2="50.0" y2="10.0"' in shown
    assert on_scale(meta["scale_points"], 0.75) == pytest.approx((0.7, 0.3))
    marker = overlay({"parsed": "99", "meta": {**meta, "pivot": None}}, "data:image/png;base64,")
    assert 'cx="90.0" cy="50.0"' in marker  # beyond the scale: at its end


@pytest.mark.parametrize(
    "meta",
    [{}, {"scale": ["0", "0"]}, {"scale": "01"}, {"scale": [0, "nan"]}, {"scale": [0, 1], "scale_points": [[0, "x"]]}],
)
def test_nothing_is_drawn_where_the_scale_is_not_known(meta):
    assert overlay({"parsed": "0.5", "meta": meta}, "data:image/png;base64,") == ""
