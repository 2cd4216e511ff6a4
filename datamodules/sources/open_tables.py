"""Opens JSONL, JSON, CSV and Parquet files and hub data sets, through the `datasets` library.

What is unusual: whatever is wrong with a file is said with its name and, where known, the line; cells of CSV
files stay the text that they are ("007", "NA", "2.50"); images stay undecoded, so that one can be skipped.

One real example::

    read_table("clocks/labels.jsonl", required=("image", "hour", "minute"))
    read_hub("HuggingFaceM4/ChartQA", "val", required=("image", "query", "label"))
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datamodules.sources.tables import Table
from smmd_lightning.compat.messages import is_table_without_rows

if TYPE_CHECKING:
    from datasets import Dataset

KINDS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def read_table(
    path: str | Path,
    required: Iterable[str] = (),
    cache_dir: str | None = None,
    field: str | None = None,
) -> Table:
    """Reads a table with the images beside it; large files go to `datasets`' cache on disk, not into memory.

    Args:
        path: A `.jsonl`, `.json` (array of objects), `.csv`, `.tsv` or `.parquet` file in UTF-8.
        required: Columns that must be there.
        cache_dir: Where `datasets` keeps its copy; None for its own choice.
        field: Key of a `.json` file's outer object under which the rows are; None for an array of rows.

    Returns:
        The table; image paths are relative to the file's folder.

    Raises:
        ValueError: Missing, empty, of another kind, or broken; the message names file and, where known, line.
    """
    import datasets

    path = Path(path)
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: expected a file ending in one of {', '.join(KINDS)}, got {path.suffix or 'none'!r}")
    if not path.is_file():
        raise ValueError(f"{path}: {'not a file' if path.exists() else 'no such file'} (from {Path.cwd()})")
    if not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty")
    try:
        if kind == "json" and (complaint := _not_utf8(path)):  # pyarrow takes any bytes, and fails when a row is read
            raise ValueError(complaint)
        options = _csv_options(path) if kind == "csv" else {}
        if field is not None:
            rows = _nested_rows(path, field)
        else:
            rows = getattr(datasets.Dataset, f"from_{kind}")(str(path), cache_dir=cache_dir, **options)
    except Exception as error:  # datasets, pandas and pyarrow each have their own
        if is_table_without_rows(error):
            raise ValueError(f"{path}: the file holds no rows") from error
        detail = _broken_line(path) or f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}"
        raise ValueError(f"{path}: cannot be read as {kind}: {detail}") from error
    if kind == "parquet":
        rows = _undecoded(rows)
    table = Table(rows, str(path), path.resolve().parent)
    if not len(table):
        raise ValueError(f"{path}: the file holds no rows")
    table.require(required)
    return table


def read_hub(
    name: str,
    split: str,
    *,
    config: str | None = None,
    revision: str | None = None,
    required: Iterable[str] = (),
    cache_dir: str | None = None,
) -> Table:
    """Reads one split of a data set from the hub, or from a local folder laid out like one.

    Args:
        name: `owner/name` on the hub, or a folder.
        split: Name of the split there, slices allowed (`train[:90%]`).
        config: Name of the configuration, where there are several.
        revision: Branch, tag or commit.
        required: Columns that must be there.
        cache_dir: Where `datasets` keeps its copy; None for its own choice.

    Returns:
        The table, its images undecoded.

    Raises:
        RuntimeError: It cannot be had: unknown name, split or revision, no network.
        ValueError: A column is missing, or there are no rows.
    """
    import datasets

    try:
        rows = datasets.load_dataset(name, config, split=split, revision=revision, cache_dir=cache_dir)
    except Exception as error:
        raise RuntimeError(
            f"data set {name!r} (configuration {config!r}, split {split!r}, revision {revision!r}) "
            f"cannot be loaded: {type(error).__name__}: {error}. "
            "Check the names, and the network or HF_HUB_OFFLINE."
        ) from error
    folder = Path(name)
    caches = [Path(datasets.config.HF_CACHE_HOME), Path(datasets.config.HF_DATASETS_CACHE)]
    if folder.is_dir():
        caches.append(folder.resolve())
    if cache_dir is not None:
        caches.append(Path(cache_dir).resolve())
    table = Table(_undecoded(rows), name, folder.resolve() if folder.is_dir() else None, tuple(caches))
    if not len(table):
        raise ValueError(f"data set {name!r}, split {split!r}: no rows")
    table.require(required)
    return table


def _nested_rows(path: Path, field: str) -> Dataset:
    """Rows under a key of one JSON object. Columns that mix numbers and text, as PlotQA's answers, become text."""
    import datasets

    whole = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(whole, dict) or not isinstance(whole.get(field), list):
        raise ValueError(f"there is no list under the key {field!r}")
    columns: dict[str, list[Any]] = {name: [] for row in whole[field] for name in row}
    for name, cells in columns.items():
        cells += [row.get(name) for row in whole[field]]
        if len({type(cell) for cell in cells if cell is not None}) > 1:
            cells[:] = [cell if isinstance(cell, str | None) else json.dumps(cell) for cell in cells]
    return datasets.Dataset.from_dict(columns)


def _csv_options(path: Path) -> dict[str, Any]:
    """Keeps every cell the text that it is; guessing types would turn "007" into 7 and "NA" into a gap."""
    import datasets

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as lines:
        header = next((cells for cells in csv.reader(lines, delimiter=separator) if cells), None)
    if header is None:
        raise ValueError("there is no line that names the columns")
    # As pandas calls them: its own index, or what stands behind a comma at the end of the line.
    header = [column or f"Unnamed: {number}" for number, column in enumerate(header)]
    if repeated := sorted({column for column in header if header.count(column) > 1}):
        raise ValueError(f"line 1 names {', '.join(map(repr, repeated))} more than once; give each column its own name")
    features = datasets.Features({column: datasets.Value("string") for column in header})
    return {"features": features, "keep_default_na": False, "sep": separator}


def _undecoded(rows: Dataset) -> Dataset:
    """Leaves decoding to `load_image`, which turns what is wrong with a picture into a `BadSample`."""
    import datasets

    for column, feature in rows.features.items():
        if isinstance(feature, datasets.Image):
            rows = rows.cast_column(column, datasets.Image(decode=False))
    return rows


def _not_utf8(path: Path) -> str | None:
    """Says in which line a file is no UTF-8; reads it piece by piece."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while piece := file.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return _broken_line(path)
    return None


def _broken_line(path: Path) -> str | None:
    """First line that is no UTF-8, or no JSON in a `.jsonl` file."""
    if path.suffix.lower() == ".parquet":
        return None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if path.suffix.lower() == ".jsonl" and text.strip():
                    json.loads(text)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                return f"line {number} is not UTF-8 (byte {byte:#04x}); save the file as UTF-8"
            except json.JSONDecodeError as error:
                return f"line {number} is not JSON ({error})"
    return None
