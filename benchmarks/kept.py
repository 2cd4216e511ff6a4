"""Judges a kept comparison again, from its table of results alone.

    python -m benchmarks.kept four_tasks          # the grid's name in configs/compare
    python -m benchmarks.kept four_tasks --settings runs/clock/ce/seed1-b4dc1a5bb556     # those of one run, as YAML
    python -m benchmarks.kept four_tasks --pack comparisons/four_tasks                   # keeps another comparison

The verdicts are those that `smmd-compare` gives today, whatever the report beside the table says.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

import yaml

from benchmarks import kept_files
from benchmarks.harness import RESULTS
from smmd_lightning.compare.blocks import Block, Bullets, Heading, markdown
from smmd_lightning.compare.claims_table import claims_section
from smmd_lightning.compare.findings import Findings, read_values
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.verdict_tables import NOTES, task_section

GRIDS = Path(__file__).resolve().parents[1] / "configs" / "compare"
FOLDERS = {
    "additions": "comparison_additions",
    "four_tasks": "comparison_four_tasks",
    "place_and_schedule": "comparison_place_and_schedule",
    "sensitivity": "sensitivity_additions",
    "soft_targets": "comparison_soft_targets",
    "study_measurements": "study_measurements",
}
"""Where the results of each grid that has been run are kept."""


def findings(grid: str) -> Findings:
    """Returns what a kept comparison says."""
    table = kept_files.read_values(RESULTS / FOLDERS[grid])
    return Findings(load_grid(GRIDS / f"{grid}.yaml"), read_values(table))


def weights(grid: str, task: str) -> dict[str, float | None]:
    """Returns the weight that each loss had in the final runs of a task."""
    table = kept_files.read_values(RESULTS / FOLDERS[grid])
    rows = [row for row in csv.DictReader(io.StringIO(table)) if (row["phase"], row["task"]) == ("final", task)]
    return {row["loss"]: float(row["weight"]) if row["weight"] else None for row in rows}


def settings(grid: str, run: str) -> str:
    """Returns the settings of one run as YAML, as `smmd fit --config` takes them.

    Raises:
        ValueError: The comparison has no such run.
    """
    of_runs = kept_files.read_settings(RESULTS / FOLDERS[grid])
    if run not in of_runs:
        raise ValueError(f"{grid} has no run {run!r}; its report lists them, for example {next(iter(of_runs))}.")
    return yaml.safe_dump(of_runs[run], sort_keys=False)


def verdicts(grid: str) -> str:
    """Returns the verdicts as Markdown."""
    found = findings(grid)
    blocks: list[Block] = [Heading(found.grid.name, 1), Bullets(NOTES), *claims_section(found)]
    for task in found.contrasts:
        blocks += task_section(found, task, weights(grid, task))
    return markdown(blocks)


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the verdicts, or the settings of a run, or packs a comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("grid", choices=sorted(FOLDERS))
    parser.add_argument("--settings", metavar="RUN", help="print the settings of this run instead")
    parser.add_argument("--pack", metavar="FOLDER", type=Path, help="keep the comparison in this folder instead")
    chosen = parser.parse_args(argv)
    try:
        if chosen.pack is not None:
            kept_files.pack(chosen.pack, RESULTS / FOLDERS[chosen.grid])
        elif chosen.settings is not None:
            print(settings(chosen.grid, chosen.settings), end="")
        else:
            print(verdicts(chosen.grid), end="")
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
