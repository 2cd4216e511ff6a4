"""Data files as people's tools write them: read as meant, or refused with file, row and column."""

import json
from pathlib import Path

import pytest
from PIL import Image

from datamodules.clock_sources import FileClocks
from datamodules.images import BadSample
from datamodules.reading import read_table
from datamodules.text_math_sources import FileMath
from smmd_lightning.types import SampleKey

ROW = {"image": "a.png", "hour": 3, "minute": 5}


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def clocks(folder: Path, name: str, content: bytes, kind=FileClocks):
    Image.new("RGB", (32, 32)).save(folder / "a.png")
    (folder / name).write_bytes(content)
    return kind(folder / name, "train", cache_dir=str(folder / "cache"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.jsonl", b"\xef\xbb\xbf" + lines(ROW)),
        ("bom.csv", b"\xef\xbb\xbfimage,hour,minute\r\na.png,3,5\r\n"),
        ("crlf.jsonl", lines(ROW).replace(b"\n", b"\r\n")),
        ("cr.csv", b"image,hour,minute\ra.png,3,5\r"),
        ("blank.jsonl", b"\n\n" + lines(ROW) + b"\n"),
        ("noend.csv", b"image,hour,minute\na.png,3,5"),
        ("array.json", json.dumps([ROW]).encode()),
        ("tabs.tsv", b"image\thour\tminute\na.png\t3\t5\n"),
    ],
)
def test_marks_line_ends_and_blank_lines_change_nothing(tmp_path, name, content):
    source = clocks(tmp_path, name, content)
    assert len(source) == 1
    assert source.example(SampleKey(0, 0)).answer == "03:05"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("utf16.csv", "image,hour,minute\na.png,3,5\n".encode("utf-16"), r"line 1 is not UTF-8 \(byte 0xff\)"),
        (
            "mixed.jsonl",
            lines(ROW) + '{"image":"é.png","hour":1,"minute":2}\n'.encode("latin-1"),
            "line 2 is not UTF-8",
        ),
        ("late.jsonl", lines(ROW) * 40_000 + b'{"image":"\xe9"}\n', "line 40001 is not UTF-8"),
        ("cut.jsonl", lines(ROW)[:-1] + b"\n\xc3", "line 2 is not UTF-8"),
        ("blank.jsonl", b"\n\n", "the file holds no rows"),
        ("head.csv", b"image,hour,minute\n", "no rows|cannot be read"),
        ("twice.csv", b"image,hour,hour,minute\na.png,3,4,5\n", "line 1 names 'hour' more than once"),
        ("semi.csv", b"image;hour;minute\na.png;3;5\n", "no column 'image', 'hour', 'minute'"),
        ("quote.csv", b'image,hour,minute\n"a.png,3,5\n', "EOF inside string starting at row"),
        ("half.jsonl", lines(ROW) + b'{"image": "a.p', "line 2 is not JSON"),
        ("numbers.jsonl", b"1\n2\n", "cannot be read as json"),
        ("zip.csv", b"\x1f\x8b\x08\x00\x00", "line 1 is not UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_file_and_line(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=rf"{name}.*({message})"):
        clocks(tmp_path, name, content)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("hour", 25),
        ("minute", 60),
        ("hour", -1),
        ("hour", float("nan")),
        ("hour", float("inf")),
        ("hour", True),
        ("hour", "four"),
        ("hour", [3]),
        ("minute", None),
        ("minute", 5.5),
        ("hour", 10**30),
    ],
)
def test_a_cell_out_of_range_or_of_another_type_is_a_bad_sample_with_its_place(tmp_path, cell, value):
    source = clocks(tmp_path, "c.jsonl", lines(ROW, {**ROW, cell: value}))
    assert source.example(SampleKey(0, 0)).answer == "03:05"
    with pytest.raises(BadSample, match=rf"c\.jsonl: row 2, column '{cell}': .* is not a whole number"):
        source.example(SampleKey(0, 1))


@pytest.mark.parametrize(
    "path",
    [
        "../a.png",
        "/etc/hostname",
        "sub/../../a.png",
        "link.png",
        "http://host/a.png",
        "file:///etc/hostname",
        "~/a.png",
        "C:\\a.png",
        "\\\\host\\a.png",
        "a\x00.png",
    ],
)
def test_paths_that_leave_the_folder_stop_the_run_and_are_never_opened(tmp_path, path, monkeypatch):
    (tmp_path / "data").mkdir()
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    (tmp_path / "data" / "link.png").symlink_to(tmp_path / "a.png")
    source = clocks(tmp_path / "data", "p.jsonl", lines({**ROW, "image": path}))
    opened = []
    monkeypatch.setattr("PIL.Image.open", lambda *a, **k: opened.append(a))
    with pytest.raises(ValueError, match=r"p\.jsonl: row 1, column 'image'"):
        source.example(SampleKey(0, 0))
    assert not opened


def test_texts_that_are_none_name_their_cell(tmp_path):
    content = b'question,answer\n"a, ""b""\nc?",#### 2\n,#### 3\nq,\n'
    source = clocks(tmp_path, "m.csv", content, FileMath)
    assert source.example(SampleKey(0, 0)).prompt == 'a, "b"\nc?'
    for index, column in ((1, "question"), (2, "answer")):
        with pytest.raises(BadSample, match=rf"m\.csv: row {index + 1}, column '{column}': '' is no text"):
            source.example(SampleKey(0, index))


@pytest.mark.parametrize("name", ["big.jsonl", "big.csv"])
def test_rows_lie_on_the_disk_and_not_in_memory(tmp_path, name):
    content = lines({"a": 1}) * 1000 if name.endswith("jsonl") else b"a\n" + b"1\n" * 1000
    (tmp_path / name).write_bytes(content)
    table = read_table(tmp_path / name, cache_dir=str(tmp_path / "cache"))
    assert len(table) == 1000
    assert [Path(file["filename"]).suffix for file in table.rows.cache_files] == [".arrow"]
    assert all(Path(file["filename"]).is_relative_to(tmp_path / "cache") for file in table.rows.cache_files)
