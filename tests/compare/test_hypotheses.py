"""Hypotheses are written before the first run and cannot change afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smmd_lightning.compare.hypotheses import FILE, Hypothesis, keep_hypotheses

CLAIM = Hypothesis("crps", ("smmd", "ce"), "less, p below 0.05")


def test_they_are_written_once_and_later_losses_are_known(tmp_path: Path) -> None:
    assert keep_hypotheses([CLAIM], ["ce", "smmd"], tmp_path) == []
    before = (tmp_path / FILE).read_text()
    assert keep_hypotheses([CLAIM], ["ce", "smmd", "dist2"], tmp_path) == ["dist2"]
    assert (tmp_path / FILE).read_text() == before
    assert json.loads(before)["hypotheses"][0]["contrast"] == ["smmd", "ce"]


def test_other_hypotheses_are_refused(tmp_path: Path) -> None:
    keep_hypotheses([CLAIM], ["ce", "smmd"], tmp_path)
    with pytest.raises(ValueError, match="other hypotheses"):
        keep_hypotheses([Hypothesis("crps", ("smmd", "ce"), "less")], ["ce", "smmd"], tmp_path)
    with pytest.raises(ValueError, match="other hypotheses"):
        keep_hypotheses([], ["ce", "smmd"], tmp_path)


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    keep_hypotheses([CLAIM], ["ce", "smmd"], tmp_path)
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text().replace("0.05", "0.50"))
    with pytest.raises(ValueError, match="other hypotheses"):
        keep_hypotheses([CLAIM], ["ce", "smmd"], tmp_path)


def test_claims_after_the_first_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "runs" / "clock" / "ce" / "seed1-0").mkdir(parents=True)
    assert keep_hypotheses([], ["ce"], tmp_path) == []
    with pytest.raises(ValueError, match="before the first run"):
        keep_hypotheses([CLAIM], ["ce", "smmd"], tmp_path)
