"""Every number of a comparison that is kept leads to the settings and the seed of its run."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks import kept, kept_files
from benchmarks.harness import RESULTS

COMPARISONS = sorted(path.parent for path in RESULTS.glob(f"*/{kept_files.VALUES}"))


def test_comparisons_are_found():
    assert {folder.name for folder in COMPARISONS} == set(kept.FOLDERS.values())


@pytest.mark.parametrize("folder", COMPARISONS, ids=lambda folder: folder.name)
def test_each_value_has_the_settings_of_its_run(folder: Path):
    rows = csv.DictReader(io.StringIO(kept_files.read_values(folder)))
    runs = {(row["run"], row["seed"], row["weight"], row["hash"]) for row in rows}
    assert runs
    settings = kept_files.read_settings(folder)
    for run, seed, weight, digest in runs:
        of_run = settings[run]
        assert run.endswith(digest)
        assert of_run["seed_everything"] == int(seed)
        if weight:
            assert of_run["model"]["loss_weight"] == float(weight)
        else:
            assert of_run["model"]["numeric_loss"] is None


@pytest.mark.parametrize("folder", COMPARISONS, ids=lambda folder: folder.name)
def test_the_settings_are_those_that_name_the_run(folder: Path):
    """A run's name ends in the hash of its settings and of the checkpoint that was evaluated."""
    for run, of_run in kept_files.read_settings(folder).items():
        texts = [json.dumps([of_run, checkpoint], sort_keys=True) for checkpoint in ("last", "best")]
        assert any(run.endswith("-" + hashlib.sha256(text.encode()).hexdigest()[:12]) for text in texts), run


def test_the_kept_files_are_part_of_the_project():
    """A rule in `.gitignore` would keep them on one machine, where all other tests pass."""
    files = [folder / name for folder in COMPARISONS for name in (kept_files.VALUES, kept_files.SETTINGS)]
    asked = "\n".join(str(path.relative_to(RESULTS)) for path in files)
    try:
        found = subprocess.run(
            ["git", "check-ignore", "--stdin"], cwd=RESULTS, input=asked, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if found.returncode == 128:
        pytest.skip("this is no git checkout")
    assert all(path.is_file() for path in files)
    assert found.stdout == ""


def comparison(folder: Path) -> Path:
    """Writes what `smmd-compare` leaves of two runs."""
    runs = {
        "runs/clock/ce/seed1-aaaaaaaaaaaa": {"seed_everything": 1, "model": {"numeric_loss": None, "lr": 1e-05}},
        "runs/clock/smmd/weight0.3-seed1-bbbbbbbbbbbb": {
            "data": {"prompts": ["{time} – ü\n", "off", "1e3"]},
            "x": [1, 1.0],
        },
    }
    for run, settings in runs.items():
        (folder / run).mkdir(parents=True)
        (folder / run / "settings.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    rows = "".join(f"final,clock,ce,,,1,test,exact_match,0.5,{run},{run[-12:]}\n" for run in runs)
    (folder / "results.csv").write_text(f"phase,task,loss,variant,weight,seed,split,metric,value,run,hash\n{rows}")
    (folder / "report.md").write_text("".join(f"| [{run}]({run}/settings.yaml) |\n" for run in runs))
    (folder / "plots").mkdir()
    (folder / "plots" / "clock-final.png").write_bytes(b"\x89PNG")
    return folder


def test_what_is_packed_reads_back_exactly(tmp_path):
    out, packed = comparison(tmp_path / "out"), tmp_path / "packed"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    kept_files.pack(out, packed)
    assert kept_files.read_values(packed) == (out / "results.csv").read_text()
    read = kept_files.read_settings(packed)
    assert len(read) == 2
    for run, settings in read.items():
        assert yaml.safe_dump(settings, sort_keys=False) == (out / run / "settings.yaml").read_text()
    assert (packed / "report.md").read_text() == "".join(f"| {run} |\n" for run in read)
    assert {path.relative_to(packed).as_posix() for path in packed.rglob("*") if path.is_file()} == {
        "plots/clock-final.png", "report.md", "results.csv.gz", "settings.json.gz",
    }  # fmt: skip
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    first = (packed / "settings.json.gz").read_bytes()
    kept_files.pack(out, packed)
    assert (packed / "settings.json.gz").read_bytes() == first


def test_a_run_without_settings_is_not_packed(tmp_path):
    out = comparison(tmp_path / "out")
    (out / "runs/clock/ce/seed1-aaaaaaaaaaaa/settings.yaml").unlink()
    with pytest.raises(ValueError, match=r"seed1-aaaaaaaaaaaa has no settings\.yaml \(1 of 2 runs\)"):
        kept_files.pack(out, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    with pytest.raises(ValueError, match=r"results\.csv does not exist"):
        kept_files.pack(tmp_path, tmp_path / "packed")


def test_the_command_prints_the_settings_of_a_run(capsys):
    run, settings = next(iter(kept_files.read_settings(RESULTS / kept.FOLDERS["soft_targets"]).items()))
    kept.main(["soft_targets", "--settings", run])
    assert yaml.safe_load(capsys.readouterr().out) == settings
    with pytest.raises(SystemExit):
        kept.main(["soft_targets", "--settings", "runs/none"])
    assert "has no run 'runs/none'" in capsys.readouterr().err


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
