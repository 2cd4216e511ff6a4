"""Clocks from files and from the hub; what is wrong with them is said with file, row and column."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from opening import open_drawn, open_file, open_hub
from PIL import Image

from datamodules.clock import DrawnClocks
from datamodules.clock.tables import (
    ClockColumns,
    ClockFiles,
    ClockHub,
)
from datamodules.sources import open_tables
from datamodules.sources.images import ImageLimits
from datamodules.sources.splits import split_of
from smmd_lightning.types import BadSample, SampleKey


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


def png(colour: str = "white", size: int = 32) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(buffer, "PNG")
    return buffer.getvalue()


def write_rows(folder: Path, rows: list[dict[str, Any]], name: str = "labels.jsonl") -> Path:
    for row in rows:
        if isinstance(row.get("image"), str) and not (folder / row["image"]).exists():
            (folder / row["image"]).write_bytes(png())
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def key(index: int, epoch: int = 0) -> SampleKey:
    return SampleKey(epoch, index)


# Clocks from files

ROWS = [
    {"image": "a.png", "hour": 15, "minute": 5, "second": 9},
    {"image": "b.png", "hour": 0, "minute": 59, "second": 0},
    {"image": "c.png", "valid": False},
    {"image": "d.png", "valid": True, "hour": 7, "minute": 30, "second": 1},
]


def test_rows_become_samples_and_invalid_ones_are_left_out(tmp_path: Path) -> None:
    source = open_file(ClockFiles, write_rows(tmp_path, ROWS), "test")
    assert (len(source), source.invalid) == (3, 1)
    examples = [source.example(key(i)) for i in range(3)]
    assert [example.answer for example in examples] == ["03:05", "12:59", "07:30"]
    assert [example.id for example in examples] == ["labels-1", "labels-2", "labels-4"]
    assert examples[0].meta == {"task": "clock", "picture": "a.png", "hour": 3, "minute": 5, "second": 9}
    assert examples[0].images[0].size == (32, 32)
    source = open_file(ClockFiles, tmp_path / "labels.jsonl", "test", answer_format="HH:MM:SS")
    assert source.example(key(0)).answer == "03:05:09"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "json", "jsonl"])
def test_every_kind_of_file_with_other_column_names(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.png").write_bytes(png())
    rows = {
        "file": ["x.png"] * 3,
        "h": [3, 11, 4],
        "m": [7, 0, 8],
        "ok": [True, False, True],
        "note": ["007", "", "NA"],
    }
    path = tmp_path / f"t.{kind}"
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        lines = [mark.join(rows)] + [mark.join(map(str, cells)) for cells in zip(*rows.values(), strict=True)]
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())  # as Excel writes it
    elif kind == "parquet":
        datasets.Dataset.from_dict(rows).to_parquet(str(path))
    else:
        records = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
        text = json.dumps(records) if kind == "json" else "\r\n".join(map(json.dumps, records))
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    columns = ClockColumns(image="file", hour="h", minute="m", valid="ok", extra=("note",))
    source = open_file(ClockFiles, path, "train", columns=columns)
    examples = [source.example(key(i)) for i in range(len(source))]
    assert [(e.answer, e.meta["note"]) for e in examples] == [("03:07", "007"), ("04:08", "NA")]


@pytest.mark.parametrize(
    ("cell", "value"),
    [("hour", 25), ("hour", -1), ("hour", None), ("hour", "noon"), ("hour", True), ("hour", [3]),
     ("minute", 75), ("minute", float("nan")), ("minute", 5.5), ("second", 60)],
)  # fmt: skip
def test_an_impossible_value_names_file_row_column_and_value(tmp_path: Path, cell: str, value: object) -> None:
    good = {"image": "a.png", "hour": 3, "minute": 5, "second": 1}
    source = open_file(ClockFiles, write_rows(tmp_path, [good, {**good, cell: value}]), "train")
    assert source.example(key(0)).answer == "03:05"
    with pytest.raises(BadSample, match=rf"labels\.jsonl: row 2, column '{cell}': .* is not a whole number") as info:
        source.example(key(1))
    written = value if isinstance(value, str) else json.dumps(value)
    assert written.strip("[]") in str(info.value).replace("True", "true").replace("None", "null")


def test_numbers_as_text_and_whole_floats_are_read(tmp_path: Path) -> None:
    rows = [
        {"image": "a.png", "hour": "3", "minute": "05"},
        {"image": "a.png", "hour": "4.0", "minute": " 6 "},
    ]
    source = open_file(ClockFiles, write_rows(tmp_path, rows), "train")
    assert [source.example(key(i)).answer for i in range(2)] == ["03:05", "04:06"]
    floats = open_file(
        ClockFiles, write_rows(tmp_path, [{"image": "a.png", "hour": 3.0, "minute": 5}], "f.jsonl"), "train"
    )
    assert floats.example(key(0)).answer == "03:05"


def test_one_column_may_hold_the_whole_time(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "t.csv").write_text("image,time\na.png,15:05:30\na.png,3:05\na.png,noonish\n")
    source = open_file(
        ClockFiles, tmp_path / "t.csv", "train", columns=ClockColumns(time="time"), answer_format="HH:MM:SS"
    )
    assert source.example(key(0)).answer == "03:05:30"
    with pytest.raises(BadSample, match="row 2, column 'time': no seconds"):
        source.example(key(1))
    with pytest.raises(BadSample, match="row 3, column 'time': 'noonish' is no time of day"):
        source.example(key(2))


def test_sources_travel_to_worker_processes(tmp_path: Path) -> None:
    for source in (
        open_drawn(DrawnClocks, 5, "train", image_size=16),
        open_file(ClockFiles, write_rows(tmp_path, ROWS), "train"),
    ):
        copy = pickle.loads(pickle.dumps(source))
        assert copy.example(key(1)).answer == source.example(key(1)).answer
        assert copy.example(key(1)).images[0].tobytes() == source.example(key(1)).images[0].tobytes()


def test_a_missing_second_matters_only_where_it_is_asked_for(tmp_path: Path) -> None:
    rows = [
        {"image": "a.png", "hour": 3, "minute": 5, "second": 4},
        {"image": "a.png", "hour": 3, "minute": 5},
    ]
    path = write_rows(tmp_path, rows)
    assert open_file(ClockFiles, path, "train").example(key(1)).answer == "03:05"
    with pytest.raises(BadSample, match="row 2, column 'second': no seconds"):
        open_file(ClockFiles, path, "train", answer_format="HH:MM:SS").example(key(1))
    without = write_rows(tmp_path, [{"image": "a.png", "hour": 3, "minute": 5}], "without.jsonl")
    with pytest.raises(ValueError, match=r"without\.jsonl: no column 'second'; the columns are 'image', 'hour'"):
        open_file(ClockFiles, without, "train", answer_format="HH:MM:SS")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("e.jsonl", b"", "the file is empty"), ("h.csv", b"image,hour,minute\n", "h.csv"),
     ("j.jsonl", b'{"image": "a", "hour": 1}\n{"image": "a" "hour": 2}\n', "line 2 is not JSON"),
     ("u.csv", b"image,hour,minute\ncaf\xe9.png,1,2\n", "line 2 is not UTF-8"),
     ("r.csv", b"image,hour,minute\na,1,2\nb,3,4,5\n", r"r\.csv: cannot be read as csv.*line 3"),
     ("p.parquet", b"garbage", r"p\.parquet: cannot be read as parquet"),
     ("c.jsonl", b'{"picture": "a.png"}\n', "no column 'image', 'hour', 'minute'; the columns are 'picture'"),
     ("x.pkl", b"cos\nsystem\n", "expected a file ending in")],
)  # fmt: skip
def test_broken_files_say_what_is_wrong(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_file(ClockFiles, tmp_path / name, "train")
    with pytest.raises(ValueError, match=r"none\.jsonl: no such file"):
        open_file(ClockFiles, tmp_path / "none.jsonl", "train")


def test_duplicate_ids_name_both_rows(tmp_path: Path) -> None:
    rows = [{"image": "a.png", "hour": 1, "minute": 2, "key": name} for name in ("x", "y", "x")]
    path = write_rows(tmp_path, rows)
    with pytest.raises(ValueError, match="row 3, column 'key': 'x' is already in row 1"):
        open_file(ClockFiles, path, "train", columns=ClockColumns(id="key"))
    path = write_rows(tmp_path, rows[:2], "unique.jsonl")
    assert open_file(ClockFiles, path, "train", columns=ClockColumns(id="key")).example(key(1)).id == "y"


def test_bad_pictures_are_bad_samples_and_escapes_stop(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    (folder / "broken.png").write_bytes(b"no picture at all")
    names = ["gone.png", "broken.png", None, "../secret.png", str(tmp_path / "secret.png")]
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps({"image": name, "hour": 1, "minute": 2}) + "\n" for name in names))
    source = open_file(ClockFiles, path, "train")
    for index, message in enumerate(["gone.png.*no such file", "broken.png.*not an image", "no image"]):
        with pytest.raises(BadSample, match=rf"row {index + 1}, column 'image'.*{message}"):
            source.example(key(index))
    for index in (3, 4):
        with pytest.raises(ValueError, match=rf"row {index + 1}, column 'image'.*data folder") as info:
            source.example(key(index))
        assert not isinstance(info.value, BadSample)
    with pytest.raises(BadSample, match="min_side"):
        open_file(ClockFiles, write_rows(folder, ROWS, "ok.jsonl"), "val", limits=ImageLimits(min_side=64)).example(
            key(0)
        )


def test_one_file_is_dealt_out_by_picture_whatever_the_order(tmp_path: Path) -> None:
    rows = [{"image": f"{i % 60}.png", "hour": i % 12, "minute": i % 60} for i in range(120)]
    shares = (0.5, 0.25, 0.25)

    def pictures(path: Path, split: str) -> list[str]:
        source = open_file(ClockFiles, path, split, fractions=shares)
        return sorted(source.table.row(i)["image"] for i in source.indices)

    path, turned = write_rows(tmp_path, rows), write_rows(tmp_path, rows[::-1], "turned.jsonl")
    parts = {split: pictures(path, split) for split in ("train", "val", "test")}
    assert sum(map(len, parts.values())) == 120
    assert not set(parts["train"]) & set(parts["test"])
    assert all(len(part) > 10 for part in parts.values())
    assert parts == {split: pictures(turned, split) for split in parts}
    assert {split_of("0.png", seed, shares) for seed in range(20)} == {"train", "val", "test"}


def test_an_odd_image_cell_is_a_bad_sample(tmp_path: Path) -> None:
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    for number, (cell, message) in enumerate(
        [(7, "no such file"), ([1, 2], "neither a path nor a picture"),
         (True, "neither a path nor a picture"), ("loop.png", "cannot be followed|no such file"),
         ("img\\a.png", "not by a backslash")]
    ):  # fmt: skip
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps({"image": cell, "hour": 1, "minute": 2}) + "\n")
        with pytest.raises(BadSample, match=rf"{number}\.jsonl: row 1, column 'image'.*({message})"):
            open_file(ClockFiles, path, "train").example(key(0))


# Clocks from the hub


def test_a_cached_path_that_leads_out_of_the_cache_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    (cache / "link.png").symlink_to(tmp_path / "secret.png")
    (cache / "own.png").write_bytes(png())
    names = [f"{cache}/../secret.png", f"{cache}/link.png", f"{cache}/own.png"]
    table = datasets.Dataset.from_dict({"image": names, "hour": [1] * 3, "minute": [2] * 3})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: table)
    source = open_hub(ClockHub, "someone/clocks", "val", cache_dir=str(cache))
    for index in (0, 1):
        with pytest.raises(ValueError, match="has no folder of its own"):
            source.example(key(index))
    assert source.example(key(2)).answer == "01:02"


def test_a_local_image_folder_reads_like_a_hub_data_set(tmp_path: Path) -> None:
    for split, colour in (("train", "red"), ("test", "blue")):
        folder = tmp_path / "set" / split
        folder.mkdir(parents=True)
        (folder / "one.png").write_bytes(png(colour))
        (folder / "metadata.jsonl").write_text(json.dumps({"file_name": "one.png", "hour": 4, "minute": 44}) + "\n")
    source = open_hub(ClockHub, str(tmp_path / "set"), "test")
    example = source.example(key(0))
    assert (len(source), example.answer) == (1, "04:44")
    assert example.images[0].getpixel((0, 0)) == (0, 0, 255)


def test_hub_rows_with_embedded_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [{"bytes": png("red"), "path": "x.png"}, {"bytes": b"broken", "path": "y.png"}]
    features = datasets.Features({"picture": datasets.Image(), "hour": datasets.Value("int64"),
                                  "minute": datasets.Value("int64")})  # fmt: skip
    rows = datasets.Dataset.from_dict({"picture": cells, "hour": [1, 2], "minute": [3, 4]}, features=features)
    asked: list[Any] = []

    def load_dataset(*args: Any, **settings: Any) -> datasets.Dataset:
        asked.append((args, settings))
        return rows

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    source = open_hub(ClockHub, "someone/clocks", "val", hub_split="validation[:2]", config="small", revision="v1",
        columns=ClockColumns(image="picture"),
    )  # fmt: skip
    assert asked[0][0] == ("someone/clocks", "small")
    assert (asked[0][1]["split"], asked[0][1]["revision"]) == ("validation[:2]", "v1")
    assert "trust_remote_code" not in asked[0][1]
    assert source.example(key(0)).images[0].getpixel((0, 0)) == (255, 0, 0)
    with pytest.raises(BadSample, match=r"someone/clocks: row 2, column 'picture': not an image"):
        source.example(key(1))
    paths = datasets.Dataset.from_dict({"image": ["/etc/passwd"], "hour": [1], "minute": [2]})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: paths)
    with pytest.raises(ValueError, match="has no folder of its own"):
        open_hub(ClockHub, "someone/clocks", "val").example(key(0))


def test_an_unknown_hub_name_says_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(RuntimeError, match=r"'someone/none'.*split 'val'.*no route.*HF_HUB_OFFLINE"):
        open_tables.read_hub("someone/none", "val")


# Real clocks


def test_the_real_benchmark_reads_as_it_is(real: Path) -> None:
    source = open_file(ClockFiles, real / "clocks" / "clockbench10" / "labels.jsonl", "test", answer_format="HH:MM:SS")
    assert (len(source), source.invalid) == (8, 2)
    assert [source.example(key(i)).answer for i in range(8)] == [
        "12:25:15", "04:06:05", "08:10:15", "06:02:30", "01:04:45", "05:21:00", "07:31:05", "08:45:11",
    ]  # fmt: skip
    assert all(np.asarray(source.example(key(i)).images[0]).shape[2] == 3 for i in range(8))


def test_the_real_rendered_faces_read_as_they_are(real: Path) -> None:
    columns = ClockColumns(extra=("rotation", "face"))
    source = open_file(ClockFiles, real / "clocks" / "rendered_5min" / "labels.jsonl", "test", columns=columns)
    assert len(source) == 72
    example = source.example(key(0))
    assert (example.answer, example.meta["rotation"], example.images[0].size) == ("01:00", "90", (224, 224))
