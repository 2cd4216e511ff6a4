"""Beliefs before and after training, paired by sample and by place in the answer."""

import re
import xml.etree.ElementTree as ET

import pytest

from smmd_lightning.commands.report import main
from smmd_lightning.report.before import before_and_after


def answer(name, raw, *beliefs):
    distributions = [
        {"written": written, "expected": expected, "spread": spread, "share": share, "values": values}
        for written, expected, spread, share, values in beliefs
    ]
    return {"id": name, "task": "math", "truth": "42", "raw": raw, "parsed": raw, "distributions": distributions}


VAGUE = answer("a", "9<b>", ("9", 4.5, 2.9, 0.2, [[4, 0.4], [9, 0.6]]))
SURE = answer("a", "42", ("4", 4.0, 0.1, 0.99, [[4, 0.98], [5, 0.02]]), ("2", 2.0, 0.0, 1.0, [[2, 1.0]]))


def test_numbers_stand_beside_each_other_place_by_place():
    page = before_and_after([VAGUE, answer("only before", "1")], [SURE, answer("only after", "2")])
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 2
    for drawing in drawings:
        ET.fromstring(drawing)
    assert "before: 4 with 40.0%" in drawings[0]
    assert "after: 4 with 98.0%" in drawings[0]
    assert "4.5 ± 2.9 → 4 ± 0.1" in drawings[0]
    assert "before: " not in drawings[1]  # wrote one number only
    assert "none → 2 ± 0" in drawings[1]
    assert "<td>number 1</td><td>2.9</td><td>0.1</td><td>20.0 %</td><td>99.0 %</td>" in page
    assert "<td>number 2</td><td>–</td><td>0</td><td>–</td><td>100.0 %</td>" in page
    assert "only before" not in page
    assert "only after" not in page
    assert "9&lt;b&gt;" in page


def test_bars_are_as_high_as_the_probabilities():
    page = before_and_after([VAGUE], [SURE])
    heights = {
        hint: float(height) for height, hint in re.findall(r'height="([\d.]+)" rx="1.5"><title>(.*?)</title>', page)
    }
    assert heights["before: 4 with 40.0%"] / heights["after: 4 with 98.0%"] == pytest.approx(0.4 / 0.98, rel=0.01)


def test_runs_that_share_nothing_are_an_error():
    with pytest.raises(ValueError, match="save_distributions=true"):
        before_and_after([answer("b", "1")], [SURE])


def test_the_command_puts_both_runs_on_one_page(tmp_path, write_run, capsys):
    import json

    for name, row in (("before", VAGUE), ("after", SURE)):
        folder = write_run(tmp_path / name, ["math"], count=3)
        with (folder / "predictions.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row | {"id": "shared", "correct": name == "after", "error": 0.0}) + "\n")
    assert main([str(tmp_path / "after"), "--before", str(tmp_path / "before")]) == 0
    assert "Beliefs before and after training" in (tmp_path / "after/report.html").read_text("utf-8")
    assert main([str(tmp_path / "after"), "--before", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
