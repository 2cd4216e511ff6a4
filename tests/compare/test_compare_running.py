"""Running a grid: nothing twice, nothing lost, and one broken run breaks no other."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smmd_lightning.commands.compare import main
from smmd_lightning.compare import figures as plots
from smmd_lightning.compare.comparison import Comparison
from smmd_lightning.compare.running import LOCK, Slots

ROOT = Path(__file__).parent.parent.parent
ONE_TASK = {"sums": {"config": "task.yaml", "metrics": ["exact_match", "mean_absolute_error"]}}
TWO_LOSSES = {"ce": {"label": "CE"}, "good": {"config": "good.yaml"}}
TABLES = ("results.csv", "report.md", "report.html")


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(plots, "available", lambda: False)  # they take longer than all the rest; tested with the report


def tables(out):
    return {name: (out / name).read_bytes() for name in TABLES}


def histories(out):
    return {str(file.relative_to(out)): file.read_text().splitlines() for file in sorted(out.rglob("history"))}


def test_a_grid_is_tuned_run_and_reported_and_then_left_alone(write_grid, tmp_path, capsys):
    file, out = write_grid(tasks=ONE_TASK), tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out), "--jobs", "4"]) == 0
    before, ran = tables(out), histories(out)
    # 3 losses x 2 weights of tuning, and 4 losses x 3 seeds.
    assert len(ran) == 6 + 12
    assert "[12/12]" in capsys.readouterr().out
    assert main(["--config", str(file), "--out", str(out)]) == 0
    assert tables(out) == before
    assert histories(out) == ran
    assert main(["--config", str(file), "--out", str(out), "--report-only"]) == 0
    assert tables(out) == before


def test_a_failed_run_is_told_stops_no_other_and_is_tried_again(write_grid, tmp_path, capsys):
    losses = {"ce": {}, "good": {"config": "good.yaml", "weights": [0.3]}}
    file, out = write_grid(quick={"fail": [2]}, tasks=ONE_TASK, losses=losses), tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out), "--jobs", "2"]) == 1
    err = capsys.readouterr().err
    assert err.count("failed: final") == 2
    assert "final sums good weight 0.3 seed 2: the GPU fell off the bus" in err
    assert "4 of 6 runs are finished. 2 are missing" in (out / "report.md").read_text()
    assert main(["--config", str(file), "--out", str(out)]) == 0
    assert "6 of 6 runs are finished." in (out / "report.md").read_text()


def test_a_failed_tuning_run_holds_back_what_needs_it_and_nothing_else(write_grid, tmp_path, capsys):
    file, out = write_grid(quick={"fail_always": [101]}, tasks=ONE_TASK, losses=TWO_LOSSES), tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out), "--jobs", "4"]) == 1
    assert "3 runs wait until tuning is finished" in capsys.readouterr().err
    assert {folder.split("/")[2] for folder in histories(out) if "seed101" not in folder} == {"ce"}


def test_shards_together_make_the_same_tables(write_grid, tmp_path):
    file, whole, parts = write_grid(tasks=ONE_TASK, losses=TWO_LOSSES), tmp_path / "whole", tmp_path / "parts"
    assert main(["--config", str(file), "--out", str(whole), "--jobs", "4"]) == 0
    first = [main(["--config", str(file), "--out", str(parts), "--shard", f"{n}/3", "--jobs", "4"]) for n in (1, 2, 3)]
    assert first == [3, 0, 0]  # a final run of the first waits for a tuning run of the second
    assert main(["--config", str(file), "--out", str(parts), "--shard", "1/3"]) == 0
    assert tables(parts) == tables(whole)


def test_no_more_runs_than_places_go_on_at_once_and_gpus_are_dealt_out(write_grid, tmp_path):
    file = write_grid(quick={"seconds": 0.05, "company": 2}, losses={"ce": {}}, seeds=[1, 2, 3])
    out = tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out), "--gpus", "4,5"]) == 0
    spans, gpus = [], set()
    for history, lines in histories(out).items():
        begun = float((out / history).with_name("begun").read_text())
        spans.append((begun, float(lines[-1].split()[2])))
        gpus.add(lines[0].split()[1])
    assert gpus == {"4", "5"}
    at_once = [sum(1 for begin, end in spans if begin <= moment <= end) for moment, _ in spans]
    assert max(at_once) == 2
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        Slots(0)


@pytest.mark.parametrize("with_its_runs", [True, False], ids=["runs die too", "runs live on"])
def test_killed_at_any_point_and_started_again_it_ends_with_the_same_tables(write_grid, tmp_path, with_its_runs):
    file = write_grid(quick={"seconds": 0.1}, tasks=ONE_TASK, losses=TWO_LOSSES, seeds=[1, 2])
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "out"
    assert main(["--config", str(file), "--out", str(undisturbed), "--jobs", "4"]) == 0
    command = [sys.executable, "-m", "smmd_lightning.commands.compare", "--config", str(file), "--out", str(out)]
    for least in (1, 4):  # in the middle of tuning, in the middle of the final runs
        process = subprocess.Popen([*command, "--jobs", "2"], cwd=ROOT, start_new_session=True)
        while len(list(out.rglob("result.*.json"))) < least:
            assert process.poll() is None
            time.sleep(0.02)
        if with_its_runs:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        assert process.wait() == -signal.SIGKILL
    assert main(["--config", str(file), "--out", str(out), "--jobs", "2"]) == 0
    assert tables(out) == tables(undisturbed)
    assert not list(out.rglob("TWO AT ONCE"))
    assert {tuple(line.split()[0] for line in lines) for lines in histories(out).values()} == {("0", "1", "2")}


def test_sigterm_is_handed_on_to_the_runs(write_grid, tmp_path):
    file, out = write_grid(quick={"seconds": 20}, losses={"ce": {}}, seeds=[1]), tmp_path / "out"
    command = [sys.executable, "-m", "smmd_lightning.commands.compare", "--config", str(file), "--out", str(out)]
    process = subprocess.Popen(command, cwd=ROOT)
    while not (logs := list(out.rglob("log.txt"))) or not logs[0].read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=15) == 128 + signal.SIGTERM
    run = Comparison(file, out).plan.final({("sums", "ce"): None})[0]
    lock = (out / run.folder / LOCK).open("ab")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it any more


def test_a_result_of_other_settings_does_not_count(write_grid, tmp_path):
    file, out = write_grid(losses={"ce": {}}, seeds=[1]), tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out)]) == 0
    result = next(out.rglob("result.test.json"))
    found = json.loads(result.read_text())
    result.write_text(json.dumps({**found, "hash": "of another"}))
    assert "1 finished, 1 to do" in Comparison(file, out).listing(1)[-2]
    assert main(["--config", str(file), "--out", str(out)]) == 0
    assert json.loads(result.read_text()) == found


def test_a_dry_run_lists_the_runs_and_starts_none(write_grid, tmp_path, capsys):
    file, out = write_grid(tasks=ONE_TASK, losses=TWO_LOSSES), tmp_path / "out"
    assert main(["--config", str(file), "--out", str(out), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "8 runs: 0 finished, 8 to do, 3 of them not listed since their weight is not chosen yet"
    assert lines[0].startswith("to do    tune sums good weight 0.1 seed 101  runs/sums/good/weight0.1-seed101-")
    assert not out.exists()
    assert main(["--config", str(file), "--out", str(out), "--jobs", "4"]) == 0
    (out / lines[0].split()[-1] / "result.validate.json").unlink()
    assert main(["--config", str(file), "--out", str(out), "--dry-run", "--jobs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "about 0.0 hours with 2 side by side, going by the finished ones"


def test_without_scipy_nothing_starts_and_the_extra_is_named(write_grid, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("smmd_lightning.commands.compare.find_spec", lambda name: None)
    assert main(["--config", str(write_grid()), "--out", str(tmp_path / "out")]) == 1
    assert "pip install 'smmd_lightning[compare]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--shard", "3/2"], "a shard is I/N"), (["--jobs", "0"], "jobs must be at least 1"), ([], "cannot be started")],
)
def test_impossible_wishes_are_refused(write_grid, tmp_path, capsys, arguments, message):
    file = write_grid(program=[str(tmp_path / "missing")])
    try:
        status = main(["--config", str(file), "--out", str(tmp_path / "out"), *arguments])
    except SystemExit as left:
        status = left.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err
