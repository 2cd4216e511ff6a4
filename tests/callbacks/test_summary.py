import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from smmd_lightning.callbacks import LineProgress, StartSummary, TerminalProgress, Throughput
from smmd_lightning.callbacks.progress import progress
from smmd_lightning.callbacks.summary import show
from smmd_lightning.cli import main

QUICKSTART = str(Path(__file__).parents[2] / "configs" / "experiment" / "quickstart.yaml")


def run(folder, *more):
    small = ["--trainer.max_steps=4", "--trainer.val_check_interval=4", "--trainer.log_every_n_steps=2"]
    small += ["--data.init_args.limit=12", "--data.init_args.batch_size=2", "--data.init_args.num_workers=0"]
    small += ["--trainer.accumulate_grad_batches=1", "--gallery.every_n_validations=0"]
    return main(["fit", "--config", QUICKSTART, "--run_dir", str(folder), *small, *more])


def test_a_run_without_a_terminal_speaks_in_lines(tmp_path, capsys):
    run(tmp_path / "run", "--model.watch=within_5_minutes")
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if line.startswith(("step", "validation"))]
    assert len(lines) == 3
    assert re.fullmatch(r"step 2/4  train/loss [\d.]+  train/ce [\d.]+  train/numeric [\d.]+  left \d+ s", lines[0])
    assert re.fullmatch(r"step 4/4  .*  samples/s [\d.]+  left 0 s", lines[1])
    assert re.fullmatch(
        r"validation at step 4  val/loss [\d.]+  val/within_5_minutes \d.*  val/exact_match \d.*", lines[2]
    )
    assert "\r" not in out
    assert "\x1b" not in out

    assert re.search(r"^batch +2 = 2 x 1 accumulated x 1 process", out, re.M)
    assert re.search(r"^numbers +NumericVocabulary\(10 tokens, values 0 to 9\)", out, re.M)
    assert re.search(r"^data +ClockDataModule: train 12, val 12\s*$", out, re.M)
    assert re.search(r"^parameters +\d.* k, trained \d.* k \(100 %\)", out, re.M)
    facts = json.loads((tmp_path / "run" / "facts.json").read_text("utf-8"))
    assert facts["seconds"]["fit"] > 0
    assert facts["folder"] == str(tmp_path / "run")
    assert "torch " in facts["versions"]


def test_time_of_a_run_that_goes_on_is_added_up(tmp_path):
    folder = tmp_path / "run"
    run(folder)
    file = folder / "facts.json"
    facts = json.loads(file.read_text("utf-8"))
    facts["seconds"] = {"fit": 5000.0, "test": 7.0}
    file.write_text(json.dumps(facts))
    run(folder, "--ckpt_path", str(folder / "checkpoints" / "last.ckpt"), "--trainer.max_steps=6")
    seconds = json.loads(file.read_text("utf-8"))["seconds"]
    assert 5000 < seconds["fit"] < 5100
    assert seconds["test"] == 7


def test_progress_can_be_off_and_a_bar_of_the_users_own_stays(tmp_path):
    cli = main(["fit", "--config", QUICKSTART, "--trainer.enable_progress_bar=false"], run=False)
    assert cli.trainer.progress_bar_callback is None
    bar = ["--trainer.callbacks=lightning.pytorch.callbacks.TQDMProgressBar"]
    cli = main(["fit", "--config", QUICKSTART, *bar], run=False)
    assert type(cli.trainer.progress_bar_callback).__name__ == "TQDMProgressBar"
    cli = main(["fit", "--config", QUICKSTART], run=False)
    assert isinstance(cli.trainer.progress_bar_callback, LineProgress)
    assert sum(isinstance(callback, StartSummary) for callback in cli.trainer.callbacks) == 1


@pytest.mark.parametrize(("terminal", "kind"), [(True, TerminalProgress), (False, LineProgress)])
def test_a_bar_is_for_terminals(monkeypatch, terminal, kind):
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: terminal))
    assert type(progress()) is kind


def test_the_bar_shows_loss_watched_metric_and_throughput():
    throughput = Throughput()
    throughput.latest = {"speed/samples_per_second": 12.5}
    trainer = SimpleNamespace(
        callbacks=[throughput],
        callback_metrics={"train/loss": 0.25},
        progress_bar_metrics={"val/exact_match": 0.5},
        loggers=[SimpleNamespace(version=3)],
    )
    assert TerminalProgress().get_metrics(trainer, None) == {"loss": 0.25, "val/exact_match": 0.5, "samples/s": 12.5}


def test_processes_other_than_the_first_keep_quiet(capsys):
    lines = LineProgress()
    lines.disable()
    trainer = SimpleNamespace(global_step=10, log_every_n_steps=10, sanity_checking=False, callback_metrics={})
    lines.on_train_batch_end(trainer, None, None, None, 0)
    lines.on_validation_end(trainer, None)
    assert capsys.readouterr().out == ""


def test_facts_are_printed_as_they_are():
    console = Console(file=io.StringIO(), width=60)
    show({"model": "[red]x[/red]", "folder": "runs/" + "y" * 70}, console)
    text = console.file.getvalue()
    assert "[red]x[/red]" in text
    assert text.count("y") == 70
