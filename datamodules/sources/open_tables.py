"""Opens JSONL, JSON, CSV and Parquet files and hub data sets.

What is unusual: whatever is wrong with a file is said with its name and, where known, the line; cells of JSON and CSV
files stay the text that they are ("007", "NA", "2.50"), so `datasets` opens only what has types of its own.

One real example::

    read_table("clocks/labels.jsonl", required=("image", "hour", "minute"))
    read_hub("HuggingFaceM4/ChartQA", "val", required=("image", "query", "label"))
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from datamodules.sources.arrow_rows import ArrowRows
from datamodules.sources.csv_rows import CsvRows
from datamodules.sources.json_rows import JsonRows
from datamodules.sources.rows import Rows
from datamodules.sources.tables import Table
from datamodules.sources.text_rows import file_version
from smmd_lightning.compat.messages import is_table_without_rows

KINDS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def read_table(
    path: str | Path,
    required: Iterable[str] = (),
    cache_dir: str | None = None,
    field: str | None = None,
) -> Table:
    """Reads a table with the images beside it; rows stay on the disk, whatever the size of the file.

    Args:
        path: A `.jsonl`, `.json` (array of objects, or one a line), `.csv`, `.tsv` or `.parquet` file in UTF-8.
        required: Columns that must be there.
        cache_dir: Where `datasets` keeps its copy of a Parquet file; None for its own choice.
        field: Key of a `.json` file's outer object under which the rows are; None for an array of rows.

    Returns:
        The table; image paths are relative to the file's folder.

    Raises:
        ValueError: Missing, empty, of another kind, or broken; the message names file and, where known, line.
    """
    path = Path(path)
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path}: expected a file ending in one of {', '.join(KINDS)}, got {path.suffix or 'none'!r}")
    if not path.is_file():
        raise ValueError(f"{path}: {'not a file' if path.exists() else 'no such file'} (from {Path.cwd()})")
    if not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty")
    rows = _opened(path.resolve(), kind, field, cache_dir, file_version(path))
    if isinstance(rows, str):
        raise ValueError(f"{path}: {rows}")
    table = Table(rows, str(path), path.resolve().parent)
    table.require(required)
    return table


@functools.lru_cache(maxsize=8)
def _opened(path: Path, kind: str, field: str | None, cache_dir: str | None, version: tuple[int, ...]) -> Rows | str:
    """Opens a file once for all its splits; returns what is wrong with it where it cannot be read."""
    try:
        if kind == "json":
            return JsonRows(path, field)
        return CsvRows(path) if kind == "csv" else _parquet(path, cache_dir, version)
    except ValueError as error:
        return f"cannot be read as {kind}: {error}"


def _parquet(path: Path, cache_dir: str | None, version: tuple[int, ...]) -> ArrowRows:
    """Copies a Parquet file into the cache of `datasets`, where its rows can be mapped into memory."""
    import datasets

    # Without a name `datasets` knows a file by its path and the time of writing, which copying programs set back.
    name = hashlib.sha256(repr(version).encode()).hexdigest()[:16]
    try:
        return ArrowRows(datasets.Dataset.from_parquet(str(path), cache_dir=cache_dir, config_name=name))
    except Exception as error:  # datasets and pyarrow each have their own
        if is_table_without_rows(error):
            raise ValueError("the file holds no rows") from error
        raise ValueError(f"{type(error.__cause__ or error).__name__}: {error.__cause__ or error}") from error


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
    table = Table(ArrowRows(rows), name, folder.resolve() if folder.is_dir() else None, tuple(caches))
    if not len(table):
        raise ValueError(f"data set {name!r}, split {split!r}: no rows")
    table.require(required)
    return table
