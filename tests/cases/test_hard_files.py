"""Data files as people's tools write them: read as meant, or refused with file, row and column."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from opening import open_file
from PIL import Image

from datamodules.clock.tables import ClockFiles
from datamodules.sources.open_tables import read_table
from datamodules.text_math.tables import MathFiles
from smmd_lightning.types import BadSample, SampleKey

ROW = {"image": "a.png", "hour": 3, "minute": 5}


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def clocks(folder: Path, name: str, content: bytes, kind=ClockFiles):
    Image.new("RGB", (32, 32)).save(folder / "a.png")
    (folder / name).write_bytes(content)
    return open_file(kind, folder / name, "train", cache_dir=str(folder / "cache"))


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
        ("index.csv", b",image,hour,minute\n0,a.png,3,5\n"),
        ("comma.csv", b"image,hour,minute,\na.png,3,5,\n"),
        ("blank.csv", b"\n\nimage,hour,minute\n\na.png,3,5\n"),
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
        ("blank.csv", b"\n\n", "no line that names the columns"),
        (
            "ragged.csv",
            b"image,hour,minute\na.png,3,5\na.png,3,5,7\n",
            "line 3 has 4 cells, and the first line names 3",
        ),
        ("head.csv", b"image,hour,minute\n", "no rows|cannot be read"),
        ("twice.csv", b"image,hour,hour,minute\na.png,3,4,5\n", "line 1 names 'hour' more than once"),
        ("semi.csv", b"image;hour;minute\na.png;3;5\n", "no column 'image', 'hour', 'minute'"),
        (
            "quote.csv",
            b'image,hour,minute\n"a.png,3,5\n',
            "line 2: unexpected end of data; look at the quo",
        ),
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
    source = clocks(tmp_path, "m.csv", content, MathFiles)
    assert source.example(SampleKey(0, 0)).prompt == 'a, "b"\nc?'
    for index, column in ((1, "question"), (2, "answer")):
        with pytest.raises(BadSample, match=rf"m\.csv: row {index + 1}, column '{column}': '' is no text"):
            source.example(SampleKey(0, index))


def test_an_answer_that_is_no_number_where_numbers_stand_is_a_bad_sample(tmp_path):
    content = (
        b'{"question": "a", "answer": 3.5}\n{"question": "b", "answer": NaN}\n{"question": "c", "answer": Infinity}\n'
    )
    source = clocks(tmp_path, "n.jsonl", content, MathFiles)
    assert source.example(SampleKey(0, 0)).answer == "3.5"
    for index in (1, 2):
        with pytest.raises(
            BadSample, match=rf"n\.jsonl: row {index + 1}, column 'answer': '(NaN|Infinity)' is no answer"
        ):
            source.example(SampleKey(0, index))


GROWTH = """
import json, sys, threading, time
from pathlib import Path
from datamodules.sources.open_tables import read_table

def own():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])

file, most = Path(sys.argv[1]), 0
def watch():
    global most
    while True:
        most = max(most, own())
        time.sleep(0.01)

before = own()
threading.Thread(target=watch, daemon=True).start()
table = read_table(file, cache_dir=str(file.parent / "cache"))
table.row(len(table) - 1)
print(json.dumps([len(table), (most - before) / file.stat().st_size]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["large.jsonl", "large.csv"])
def test_a_large_file_is_never_whole_in_memory(tmp_path, name):
    """600 MB, of which a small share is ever in memory; what holds for these holds for any size."""
    row = json.dumps({"question": "q" * 1990}) + "\n" if name.endswith("jsonl") else "q" * 2000 + "\n"
    with (tmp_path / name).open("w") as file:
        file.write("" if name.endswith("jsonl") else "question\n")
        for _ in range(300):
            file.write(row * 1000)
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows, share = json.loads(done.stdout.splitlines()[-1])
    assert rows == 300_000
    assert share < 0.5


@pytest.mark.parametrize("name", ["big.jsonl", "big.csv", "big.json"])
def test_rows_lie_on_the_disk_and_not_in_memory(tmp_path, name):
    cell = "x" * 500
    content = {
        "big.jsonl": lines({"a": cell}) * 1000,
        "big.csv": b"a\n" + f"{cell}\n".encode() * 1000,
        "big.json": json.dumps([{"a": cell}] * 1000).encode(),
    }[name]
    (tmp_path / name).write_bytes(content)
    table = read_table(tmp_path / name, cache_dir=str(tmp_path / "cache"))
    assert (len(table), table.row(999)) == (1000, {"a": cell})
    assert len(pickle.dumps(table)) < 10_000, "eight bytes a row"
    assert [path.name for path in tmp_path.iterdir()] == [name], "and no copy"
