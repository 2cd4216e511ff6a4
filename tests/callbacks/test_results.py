"""Rows of predictions survive whatever models say and data sets hold."""

import datetime
import decimal
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
import pytest
from tiny_runs import RowsData, module, trainer

from smmd_lightning.callbacks import ResultsWriter
from smmd_lightning.callbacks.results import metrics_text, shown_first

SAID = "7\u2028eight\u2029nine\x85\x0b\x1c\r\n\U0001f642"
"""Line separators of all kinds: only one of them ends a line of JSON."""


def test_any_text_and_any_fact_comes_back_as_one_row_a_sample(tmp_path):
    made = module()
    facts = {"day": datetime.date(2026, 1, 31), "price": decimal.Decimal("2.50"), "raw": b"\xff"}
    made.test_step = lambda batch, batch_idx: [
        {"id": example.id, "raw": SAID, "meta": facts} for example in batch.examples
    ]
    writer = ResultsWriter(report=False, save_images=0)
    trainer(tmp_path, writer).test(made, RowsData(), verbose=False)
    rows = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["id"] for row in rows] == [f"row-{number}" for number in range(8)]
    assert all(row["raw"] == SAID for row in rows)
    assert rows[0]["meta"] == {"day": "2026-01-31", "price": "2.50", "raw": "b'\\xff'"}
    assert not list(tmp_path.glob(".*"))


def test_predict_leaves_the_files_of_test_as_they_are(tmp_path, capsys):
    made, writer = module(), ResultsWriter(report=False, save_images=2)
    trainer(tmp_path, writer).test(made, RowsData(), verbose=False)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json*")}
    made.predict_step = lambda batch, batch_idx: [{"id": example.id, "raw": "other"} for example in batch.examples]
    capsys.readouterr()
    trainer(tmp_path, writer).predict(made, RowsData(), return_predictions=False)
    assert {file: file.read_bytes() for file in before} == before
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text("utf-8").splitlines()]
    assert [row["raw"] for row in rows] == ["other"] * 8
    assert f"answers      {tmp_path / 'answers.jsonl'}" in capsys.readouterr().out


def test_predict_and_test_may_not_share_a_file():
    with pytest.raises(ValueError, match=r"results.answers and results.predictions are both 'predictions.jsonl'"):
        ResultsWriter(answers="predictions.jsonl")


def test_as_many_pictures_are_stored_as_asked_for_whatever_group_is_empty():
    rows = [{"id": str(number), "error": 1.0, "parsed": "2", "correct": False} for number in range(9)]  # none is right
    assert sorted(shown_first(rows, 6)) == list(range(9))
    rows[4] |= {"error": 9.0}
    rows[7] |= {"error": 0.0, "correct": True}
    assert shown_first(rows, 6)[0] == 4
    assert shown_first(rows, 6)[2] == 7


def test_metrics_are_strict_json():
    text = metrics_text({"a": float("nan"), "b": float("-inf"), "c": 0.5})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": None, "c": 0.5}


def test_a_run_folder_that_looks_like_markup_is_printed_as_it_is(tmp_path, capsys):
    folder = tmp_path / "x[/bold]"
    trainer(folder, ResultsWriter(report=False, save_images=0)).test(module(), RowsData(), verbose=False)
    assert f"{folder / 'predictions.jsonl'}" in capsys.readouterr().out
