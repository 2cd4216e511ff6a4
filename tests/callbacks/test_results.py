"""Rows of predictions survive whatever models say and data sets hold."""

import datetime
import decimal
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from smmd_lightning.callbacks import ResultsWriter

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
