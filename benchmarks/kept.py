"""Judges a kept comparison again, from its table of results alone.

    python -m benchmarks.kept four_tasks          # the grid's name in configs/compare

The verdicts are those that `smmd-compare` gives today, whatever the report beside the table says.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import RESULTS
from smmd_lightning.compare.blocks import Block, Bullets, Heading, markdown
from smmd_lightning.compare.findings import Findings, read_values
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.verdict_tables import NOTES, task_section

GRIDS = Path(__file__).resolve().parents[1] / "configs" / "compare"
FOLDERS = {
    "additions": "comparison_additions",
    "four_tasks": "comparison_four_tasks",
    "place_and_schedule": "comparison_place_and_schedule",
    "soft_targets": "comparison_soft_targets",
}
"""Where the results of each grid that has been run are kept."""


def findings(grid: str) -> Findings:
    """Returns what a kept comparison says."""
    table = (RESULTS / FOLDERS[grid] / "results.csv").read_text(encoding="utf-8")
    return Findings(load_grid(GRIDS / f"{grid}.yaml"), read_values(table))


def weights(grid: str, task: str) -> dict[str, float | None]:
    """Returns the weight that each loss had in the final runs of a task."""
    table = (RESULTS / FOLDERS[grid] / "results.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(io.StringIO(table)) if (row["phase"], row["task"]) == ("final", task)]
    return {row["loss"]: float(row["weight"]) if row["weight"] else None for row in rows}


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the verdicts as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("grid", choices=sorted(FOLDERS))
    name = parser.parse_args(argv).grid
    found = findings(name)
    blocks: list[Block] = [Heading(found.grid.name, 1), Bullets(NOTES)]
    for task in found.contrasts:
        blocks += task_section(found, task, weights(name, task))
    print(markdown(blocks), end="")


if __name__ == "__main__":
    main()
