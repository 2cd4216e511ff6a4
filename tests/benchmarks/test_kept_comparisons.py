"""Every number of a comparison that is kept leads to the settings and the seed of its run."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks import kept
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


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ("four_tasks", {("clock", "dist2"): "better"}),
        ("soft_targets", {("clock", "dist2"): "better"}),
        (
            "place_and_schedule",
            {("clock", "warmup"): "better", ("clock", "ce"): "better", ("clock", "light"): "better"}
            | {("products", loss): "uneven spread" for loss in ("place", "warmup", "decay", "ce", "light")},
        ),
        ("additions", {}),
    ],
)
def test_the_documents_claim_what_the_kept_tables_say(grid, expected):
    verdicts = kept.findings(grid).verdicts
    texts = {(task, loss): found.text for task, of in verdicts.items() for loss, found in of.items()}
    assert {cell: text for cell, text in texts.items() if text != "within noise"} == expected


def test_the_command_prints_the_tables(capsys):
    kept.main(["soft_targets"])
    assert "| DIST2 | 1 | 4 | 0.5270 [0.4755, 0.5785] | +0.0717 [+0.0154, +0.1281] | 4 : 0 |" in capsys.readouterr().out
