"""Which rows of which file become which split."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from datamodules.sources.origins import Split
from datamodules.text_math import MathFiles
from smmd_lightning.types import SampleKey

SPLITS: tuple[Split, ...] = ("train", "val", "test")


def questions(files: MathFiles, split: Split) -> set[str]:
    source = files.open(split, seed=0)
    return {source.example(SampleKey(0, index)).prompt for index in range(len(source))}


@pytest.mark.parametrize("given", [(), ("val",), ("test",), ("val", "test")])
def test_no_sample_is_in_two_splits_whichever_files_are_given(tmp_path: Path, given: tuple[str, ...]) -> None:
    paths = {}
    for number, name in enumerate(("train", *given)):
        rows = [{"question": f"{100 * number + k}?", "answer": "1"} for k in range(100)]
        paths[name] = str(tmp_path / f"{name}.jsonl")
        Path(paths[name]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {split: questions(MathFiles(**paths, cache_dir=str(tmp_path / "cache")), split) for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        assert not found[one] & found[other], (one, other)
    assert len(set().union(*found.values())) == 100 * len(paths), "no row is lost"
    assert all(len(found[split]) == 100 for split in given), "a file of its own is not divided"
