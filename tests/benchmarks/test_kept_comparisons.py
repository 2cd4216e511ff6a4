"""Every number of a comparison that is kept leads to the settings and the seed of its run."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.harness import RESULTS

COMPARISONS = sorted(path.parent for path in RESULTS.glob("*/results.csv"))


def test_comparisons_are_found():
    assert {"comparison_additions", "comparison_four_tasks"} <= {folder.name for folder in COMPARISONS}


@pytest.mark.parametrize("folder", COMPARISONS, ids=lambda folder: folder.name)
def test_each_value_has_the_settings_of_its_run(folder: Path):
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        runs = {(row["run"], row["seed"], row["weight"], row["hash"]) for row in csv.DictReader(file)}
    assert runs
    for run, seed, weight, digest in runs:
        settings = yaml.safe_load((folder / run / "settings.yaml").read_text(encoding="utf-8"))
        assert run.endswith(digest)
        assert settings["seed_everything"] == int(seed)
        if weight:
            assert settings["model"]["loss_weight"] == float(weight)
        else:
            assert settings["model"]["numeric_loss"] is None


def test_the_settings_are_part_of_the_project():
    """A rule for runs in `.gitignore` would keep them on one machine, where all other tests pass."""
    kept = [path for folder in COMPARISONS for path in folder.glob("runs/*/*/*/settings.yaml")]
    asked = "\n".join(str(path.relative_to(RESULTS)) for path in kept)
    try:
        found = subprocess.run(
            ["git", "check-ignore", "--stdin"], cwd=RESULTS, input=asked, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if found.returncode == 128:
        pytest.skip("this is no git checkout")
    assert kept
    assert found.stdout == ""
