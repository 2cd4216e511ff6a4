"""The files of a comparison that is kept: all values and the settings of every run, each in one compressed file.

Unusual: a run's name ends in a hash of its settings, so settings that were read back can be proven to be those of the
run.

One real example::

    pack(Path("comparisons/four_tasks"), RESULTS / "comparison_four_tasks")
    settings = read_settings(RESULTS / "comparison_four_tasks")
    settings["runs/clock/ce/seed1-0123456789ab"]["seed_everything"]      # 1
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from smmd_lightning.compare.one_run import SETTINGS as RUN_SETTINGS

VALUES, SETTINGS = "results.csv.gz", "settings.json.gz"


def read_values(folder: Path) -> str:
    """Returns the table of all values as `smmd-compare` wrote it."""
    return _read(folder / VALUES)


def read_settings(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the settings of every run by the run's name, as in the column `run` of the table."""
    found: dict[str, dict[str, Any]] = json.loads(_read(folder / SETTINGS))
    return found


def pack(comparison: Path, kept: Path) -> None:
    """Copies what is kept of a comparison; nothing of the comparison itself is changed.

    Written are the values, the settings of every run, `report.md` (names of runs in place of links to their folders)
    and the plots. Files of the same names are replaced; the README is written by hand.

    Args:
        comparison: Folder that `smmd-compare` wrote.
        kept: Folder to write to.

    Raises:
        ValueError: The comparison has no table, or a run in the table has no settings.
    """
    table = comparison / "results.csv"
    if not table.is_file():
        raise ValueError(f"{table} does not exist. Let `smmd-compare` write its report first.")
    values = table.read_text(encoding="utf-8")
    files = sorted(comparison.glob(f"runs/**/{RUN_SETTINGS}"))
    settings = {
        file.parent.relative_to(comparison).as_posix(): yaml.safe_load(file.read_text("utf-8")) for file in files
    }
    runs = {row["run"] for row in csv.DictReader(io.StringIO(values))}
    if missing := sorted(runs - set(settings)):
        raise ValueError(f"{comparison / missing[0]} has no {RUN_SETTINGS} ({len(missing)} of {len(runs)} runs).")
    kept.mkdir(parents=True, exist_ok=True)
    _write(kept / VALUES, values)
    lines = ",\n".join(f"{json.dumps(run)}: {json.dumps(of_run)}" for run, of_run in settings.items())
    _write(kept / SETTINGS, f"{{\n{lines}\n}}\n")
    report = (comparison / "report.md").read_text(encoding="utf-8")
    unlinked = re.sub(rf"\[(runs/[^\]]+)\]\([^)]+/{re.escape(RUN_SETTINGS)}\)", r"\1", report)
    (kept / "report.md").write_text(unlinked, encoding="utf-8")
    shutil.copytree(comparison / "plots", kept / "plots", dirs_exist_ok=True)


def _read(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode("utf-8")


def _write(file: Path, text: str) -> None:
    """Writes text compressed; without a time inside, the same text gives the same file."""
    file.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
