"""What a person sees in a table's file is what its rows hold; against the csv and json modules, by exact strings."""

import csv
import datetime
import io
import json
import os
import random
import zoneinfo
from decimal import Decimal
from pathlib import Path

import datasets
import pytest

from datamodules.sources.open_tables import read_table
from datamodules.sources.tables import cell_text
from smmd_lightning.types import BadSample

WRITTEN = ["3", "2.5", "12.0", "2.50", "-0.0", "1e3", "1E+400", "1" + "0" * 40, "0.1000000000000000055511151231257827"]
TEXTS = [
    "007",
    "2020-01-31",
    "2020-01-31T10:00:00Z",
    "NA",
    "nan",
    "null",
    "true",
    "1,000",
    "1_000",
    "½",
    " x ",
    "a\u2028b",
]


def rows_of(path: Path, **settings):
    table = read_table(path, **settings)
    return [table.row(index) for index in range(len(table))]


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "lines.json", "field.json"])
def test_numbers_of_json_keep_their_written_form_and_texts_are_no_dates(tmp_path, name):
    cells = WRITTEN + [json.dumps(text) for text in TEXTS] + ["true", "null", '["1.0", 2.0]']
    rows = [f'{{"cell": {cell}}}' for cell in cells]
    content = {
        "t.jsonl": "\n".join(rows),
        "lines.json": "\n".join(rows),
        "t.json": "[" + ",\n ".join(rows) + "]",
        "field.json": '{"é": [{"rows": []}], "rows" : [' + " , ".join(rows) + '], "x": 1}',
    }[name]
    (tmp_path / name).write_text(content, "utf-8")
    found = [row["cell"] for row in rows_of(tmp_path / name, field="rows" if name == "field.json" else None)]
    assert found == [*WRITTEN, *TEXTS, True, None, ["1.0", "2.0"]]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_cells_of_csv_are_the_text_between_the_separators(tmp_path, name):
    with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if name == "t.tsv" else ",")
        writer.writerows([["cell", "other"], *([text, "1.0"] for text in WRITTEN + TEXTS + [""])])
    assert [row["cell"] for row in rows_of(tmp_path / name)] == [*WRITTEN, *TEXTS, ""]


@pytest.mark.parametrize("seed", range(20))
def test_any_cells_come_back_in_any_order(tmp_path, seed):
    rng = random.Random(seed)
    signs = ['"', ",", "\n", "\r", "\r\n", "é", "\u2028", "\x0b", "💡", " ", "a", "'", "\\", "7"]
    rows = [["".join(rng.choices(signs, k=rng.randrange(6))) + "x" for _ in range(3)] for _ in range(30)]
    end = rng.choice(["\n", "\r\n"])
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([["a", "b", "c"], *rows])
    objects = [dict(zip("abc", row, strict=True)) for row in rows]
    plain = rng.random() < 0.5
    files = {
        "t.csv": buffer.getvalue(),
        "t.jsonl": end.join(json.dumps(row, ensure_ascii=plain) for row in objects),
        "t.json": json.dumps(objects, ensure_ascii=plain, indent=rng.choice([None, 1])),
    }
    for name, content in files.items():
        mark = b"\xef\xbb\xbf" if rng.random() < 0.5 else b""
        (tmp_path / name).write_bytes(mark + content.encode("utf-8"))
        table = read_table(tmp_path / name)
        order = rng.sample(range(30), 30)
        assert [table.row(index) for index in order] == [objects[index] for index in order], name
        assert list(table.rows) == objects
        assert list(table.rows.column("b")) == [row[1] for row in rows]


def test_rows_may_have_different_columns_and_types(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n\n{"b": "x", "a": "one"}\n{"a": [1, {"c": 2.0}]}\n')
    assert rows_of(tmp_path / "t.jsonl") == [
        {"a": "1", "b": None},
        {"a": "one", "b": "x"},
        {"a": ["1", {"c": "2.0"}], "b": None},
    ]


def test_a_short_row_lacks_its_last_cells_and_empty_cells_too_many_are_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2\n1,2,3,\n1,2,3,, \n   \n")
    whole = {"a": "1", "b": "2", "c": "3"}
    assert rows_of(tmp_path / "t.csv") == [{"a": "1", "b": "2", "c": None}, whole, whole]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "image,question,answer\na.png,Red, or blue?,3\n", "line 2 has 4 cells, and the first line names 3"),
        ("t.csv", 'a,b\n1,2\n\n"x\ny",2\n1,2,3\n', "line 6 has 3 cells, and the first line names 2"),
        ("t.csv", 'a,b\n1,2\n3,"a" b\n', "line 3: ',' expected after '\"'; look at the quotation marks"),
        ("t.jsonl", 'null\n{"a": 1}\n', "line 1: expected an object of cells by column, got None"),
        ("t.jsonl", '{"a": 1}\n{"a" 1}\n', r"line 2 is not JSON \(Expecting ':' delimiter, column 6\)"),
        ("t.jsonl", '{"a": ' + "[" * 100_000 + "\n", "line 1 is not JSON that can be read"),
        ("t.json", '[{"a": 1},\n {"a" 1}]', r"line 2 is not JSON \(Expecting ':' delimiter, column 7\)"),
        ("t.json", '[{"a": 1} {"a": 1}]', r"line 1 is not JSON \(Expecting ',', column 11\)"),
        ("t.json", '[{"a": 1}, 7]', "row 2: expected an object of cells by column, got '7'"),
        ("t.json", '[{"a": 1},', "line 1 is not JSON"),
        ("t.json", "[]", "the file holds no rows"),
    ],
)
def test_broken_rows_are_named_with_their_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name}: cannot be read as (csv|json): {message}"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "parquet"])
def test_a_file_replaced_under_its_name_gives_its_new_rows(tmp_path, kind):
    path, cache = tmp_path / f"labels.{kind}", str(tmp_path / "cache")
    for answer in ("old", "new"):
        rows = datasets.Dataset.from_dict({"a": [answer]})
        if kind == "csv":
            path.write_text(f"a\n{answer}\n")
        elif kind == "parquet":
            rows.to_parquet(str(path))
        else:
            path.write_text(json.dumps({"a": answer} if kind == "jsonl" else [{"a": answer}]))
        os.utime(path, (1_700_000_000, 1_700_000_000))  # as `cp -p` and `rsync -t` set it
        assert rows_of(path, cache_dir=cache) == [{"a": answer}]


def test_a_file_that_changes_under_a_run_ends_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    table = read_table(path)
    path.write_text("a\n10\n2\n")
    with pytest.raises(RuntimeError, match=r"t\.csv has changed since it was opened"):
        table.row(1)


def test_typed_cells_of_parquet_are_written_as_a_person_would(tmp_path):
    import pyarrow
    import pyarrow.parquet

    noon = datetime.datetime(2020, 1, 31, 12, 30, tzinfo=zoneinfo.ZoneInfo("UTC"))
    columns = {
        "double": ([12.0, 2.5, 1e22], pyarrow.float64(), ["12", "2.5", "1e+22"]),
        "single": ([0.1, 16777216.0, 3.0], pyarrow.float32(), ["0.1", "16777216", "3"]),
        "half": ([0.1, 2.5, 3.0], pyarrow.float16(), ["0.1", "2.5", "3"]),
        "whole": ([7, -1, 2**60], pyarrow.int64(), ["7", "-1", str(2**60)]),
        "decimal": ([Decimal("2.50"), Decimal("0.00"), Decimal("1E+3")], pyarrow.decimal128(9, 2),
                    ["2.50", "0.00", "1000.00"]),
        "day": ([noon.date()] * 3, pyarrow.date32(), ["2020-01-31"] * 3),
        "hour": ([noon.time()] * 3, pyarrow.time64("us"), ["12:30:00"] * 3),
        "flag": ([True, False, True], pyarrow.bool_(), ["true", "false", "true"]),
    }  # fmt: skip
    table = pyarrow.table({name: pyarrow.array(cells, kind) for name, (cells, kind, _) in columns.items()})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    rows = rows_of(tmp_path / "t.parquet", cache_dir=str(tmp_path / "cache"))
    for name, (_, _, texts) in columns.items():
        assert [cell_text(row[name], name) for row in rows] == texts


@pytest.mark.parametrize("cell", [None, "", " ", [], {}, float("nan"), float("-inf"), b"12"])
def test_no_text_is_a_bad_sample(cell):
    with pytest.raises(BadSample, match=r"t\.csv: row 1, column 'a': .* is no answer"):
        cell_text(cell, "t.csv: row 1, column 'a'", "answer")
