"""Rows whose answer is a number are found in one pass, as the parser of answers sees them."""

import json

import pytest
from opening import open_file

from datamodules.sources.json_rows import JsonRows
from datamodules.sources.splits import split_of
from datamodules.text_math.numeric_rows import is_number
from datamodules.text_math.tables import MathColumns, MathFiles
from smmd_lightning.answers import parse_quantity
from smmd_lightning.types import BadSample, SampleKey


def save(folder, rows):
    path = folder / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_with_only_numeric_such_a_row_is_kept_to_be_named(tmp_path):
    path = save(tmp_path, [{"question": f"{word}?", "answer": "1", "ok": word} for word in ("yes", "perhaps", "no")])
    columns = MathColumns(numeric="ok")
    source = open_file(MathFiles, path, "train", columns=columns, only_numeric=True)
    assert source.indices.tolist() == [0, 1]
    with pytest.raises(BadSample, match="row 2, column 'ok': 'perhaps' is neither true nor false"):
        source.example(SampleKey(0, 1))


def test_all_splits_together_go_through_a_table_three_times_at_most(tmp_path, monkeypatch):
    """Once for the places of its rows, once for their splits, once for their answers."""
    passes = []
    for name in ("_find", "__iter__"):
        whole = getattr(JsonRows, name)
        monkeypatch.setattr(JsonRows, name, lambda self, name=name, whole=whole: passes.append(name) or whole(self))
    path = save(tmp_path, [{"question": f"{i}?", "answer": str(i)} for i in range(50)])
    files = MathFiles(str(path), only_numeric=True)
    sources = {split: files.open(split) for split in ("train", "val", "test")}
    assert sorted(passes) == ["__iter__", "__iter__", "_find"]
    for split, source in sources.items():
        assert [index for index in range(50) if split_of(f"{index}?", 0, (0.8, 0.1, 0.1)) == split] == [*source.indices]


@pytest.mark.parametrize("text", ["7", "-7", "1,080", "12,345,678.5", "0.5", "1,08", "12:48", "", "7.", "1e5", "٣"])
def test_the_short_way_to_see_a_number_agrees_with_the_parser(text):
    assert is_number(text) == (parse_quantity(text) is not None)
