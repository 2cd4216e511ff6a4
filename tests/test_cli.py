"""Every experiment file, and the command line's own rules, through the real command line in this process."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from smmd_lightning.cli import SMMDCLI, main, with_checkpoint
from smmd_lightning.module import SMMDModule
from smmd_lightning.report.run import read_run

ROOT = Path(__file__).parent.parent
EXPERIMENTS = sorted((ROOT / "configs" / "experiment").rglob("*.yaml"))
QUICKSTART = str(ROOT / "configs" / "experiment" / "quickstart.yaml")
SMALL = [
    "--trainer.max_steps=2",
    "--trainer.val_check_interval=2",
    "--trainer.limit_val_batches=1",
    "--trainer.enable_progress_bar=false",
    "--trainer.enable_model_summary=false",
    "--data.init_args.limit=8",
    "--data.init_args.batch_size=2",
    "--data.init_args.num_workers=0",
]


def is_tiny(file: Path) -> bool:
    backbone = file.parent / yaml.safe_load(file.read_text())["model"]["backbone"]
    return yaml.safe_load(backbone.read_text())["init_args"]["path"].startswith("tiny:")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("file", [file for file in EXPERIMENTS if is_tiny(file)], ids=lambda file: file.stem)
def test_tiny_experiments_train_and_evaluate(file, tmp_path):
    run = tmp_path / "run"
    common = ["--config", str(file), "--run_dir", str(run), *SMALL]
    main(["fit", *common])
    assert (run / "config.yaml").exists()
    last = run / "checkpoints" / "last.ckpt"
    main(["test", *common, "--ckpt_path", str(last), "--trainer.limit_test_batches=2"])
    metrics = json.loads((run / "metrics.json").read_text())
    assert "test/exact_match" in metrics
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    assert rows
    assert {"id", "prompt", "truth", "raw", "parsed", "error"} <= set(rows[0])


@pytest.mark.parametrize("file", [file for file in EXPERIMENTS if not is_tiny(file)], ids=lambda file: file.stem)
def test_real_experiments_are_built_as_far_as_that_goes_without_weights(file):
    text = yaml.safe_load(file.read_text())
    assert text["run_dir"] == f"runs/{file.stem}"
    cpu = ["--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.precision=32-true"]
    if "strategy" in text["trainer"]:
        cpu.append("--trainer.strategy=auto")
    cli = main(["fit", "--config", str(file), *cpu], run=False)
    assert cli.datamodule.processor_path == cli.model.backbone.path
    assert cli.datamodule.seed == 1
    assert not cli.model.backbone.loaded


def run_small(run, *more, command="fit"):
    return main([command, "--config", QUICKSTART, "--run_dir", str(run), *SMALL, *more])


def test_runs_without_a_logger_and_until_the_clock_ends_them(tmp_path):
    without = ["--trainer.logger=false", "--trainer.log_every_n_steps=0", "--trainer.val_check_interval=2"]
    clock = [
        "--trainer.max_steps=-1",
        "--trainer.max_time=00:00:00:02",
        "--model.lr_scheduler.init_args.decay=constant",
    ]
    cli = run_small(tmp_path / "run", *without, *clock)
    assert cli.trainer.global_step > 0
    assert (tmp_path / "run" / "checkpoints" / "last.ckpt").exists()


LOGGERS = {
    "csv": ["--trainer.logger=CSVLogger", "--trainer.logger.save_dir={elsewhere}"],
    "csv without a folder": ["--trainer.logger=CSVLogger", "--trainer.logger.save_dir={run}"],
    "wandb": ["--trainer.logger=WandbLogger", "--trainer.logger.save_dir={elsewhere}", "--trainer.logger.offline=true"],
    "none": ["--trainer.logger=false"],
}


@pytest.mark.parametrize("name", LOGGERS)
def test_a_run_stays_in_its_folder_with_any_logger(tmp_path, name, monkeypatch):
    if name == "wandb":
        pytest.importorskip("wandb")
        monkeypatch.setenv("WANDB_SILENT", "true")
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    logger = [part.format(run=run, elsewhere=elsewhere) for part in LOGGERS[name]]
    run_small(run, *logger, "--resume=auto")
    assert {path.name for path in (run / "checkpoints").iterdir()} >= {"last.ckpt"}
    assert (run / "config.yaml").exists()
    assert not list(elsewhere.rglob("*.ckpt"))
    with pytest.raises(RuntimeError, match="already holds a run"):
        run_small(run, *logger)
    again = run_small(run, *logger, "--resume=auto", "--trainer.max_steps=3")
    assert again.trainer.global_step == 3
    assert again.trainer.ckpt_path == str(run / "checkpoints" / "last.ckpt")


def test_a_csv_log_is_kept_and_gone_on_with(tmp_path):
    log = ["--trainer.logger=CSVLogger", "--trainer.logger.name=", "--trainer.logger.version="]
    steps = {}
    for name, parts in {"alone": [4], "stopped": [2, 4]}.items():
        run = tmp_path / name
        for until in parts:
            where = [
                f"--trainer.logger.save_dir={run}",
                f"--trainer.max_steps={until}",
                "--trainer.log_every_n_steps=1",
            ]
            constant = "--model.lr_scheduler.init_args.decay=constant"
            run_small(run, *log, *where, constant, "--resume=auto")
            if until == 2:  # what a run had logged after its checkpoint, when it was killed
                file = run / "metrics.csv"
                columns = file.read_text().splitlines()[0].split(",")
                file.write_text(file.read_text() + ",".join("2" if c == "step" else "9" for c in columns) + "\n9,9")
        rows = list(csv.DictReader((run / "metrics.csv").open()))
        keep = ("step", "train/loss", "val/loss", "lr-AdamW")
        steps[name] = [{key: row.get(key) for key in keep} for row in rows]
    assert {row["step"] for row in steps["alone"]} == {"0", "1", "2", "3"}
    assert steps["stopped"] == steps["alone"]


def test_a_kept_config_starts_a_new_run_and_a_refused_one_leaves_it(tmp_path):
    run = tmp_path / "run"
    run_small(run)
    first = (run / "config.yaml").read_bytes()
    last = str(run / "checkpoints" / "last.ckpt")
    with pytest.raises(RuntimeError, match="does not fit the model"):
        run_small(
            run,
            "--ckpt_path",
            last,
            "--model.backbone.init_args.path=tiny:llava",
        )
    assert (run / "config.yaml").read_bytes() == first
    run_small(run, "--ckpt_path", last, "--trainer.max_steps=3")
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["ckpt_path"] is None
    assert config["trainer"]["max_steps"] == 3
    again = main(["fit", "--config", str(run / "config.yaml"), "--run_dir", str(tmp_path / "other")])
    assert again.trainer.ckpt_path is None
    assert again.trainer.global_step == 3


def test_a_moved_run_remembers_what_is_best(tmp_path):
    run_small(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    cli = run_small(tmp_path / "moved", "--resume=auto", "--trainer.max_steps=3")
    assert cli.trainer.checkpoint_callback.best_model_path == str(tmp_path / "moved" / "checkpoints" / "best.ckpt")
    assert cli.trainer.checkpoint_callback.best_model_score is not None


def curve(run, name):
    """Every value of a logged curve, step by step."""
    return [value for _, value in read_run(run).curves[name]]


def test_a_second_run_in_the_same_folder_is_refused_and_says_what_to_do(tmp_path):
    run_small(tmp_path / "run")
    with pytest.raises(RuntimeError, match=r"already holds a run.*--ckpt_path .*last.ckpt.*--run_dir"):
        run_small(tmp_path / "run")


def test_nothing_is_advertised(tmp_path, caplog):
    with caplog.at_level("INFO"):
        main(["fit", "--config", QUICKSTART, "--run_dir", str(tmp_path / "run")], run=False)
    assert "GPU available" in caplog.text  # what Lightning says of the machine stays
    assert "litlogger" not in caplog.text


def test_resume_auto_starts_fresh_and_then_goes_on(tmp_path):
    resume = "--resume=auto"
    assert run_small(tmp_path / "run", resume).trainer.global_step == 2
    cli = run_small(tmp_path / "run", resume, "--trainer.max_steps=4")
    assert cli.trainer.global_step == 4
    assert cli.trainer.ckpt_path.endswith("last.ckpt")


def test_checkpoints_load_without_code_and_by_path_alone(tmp_path):
    cli = run_small(tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "last.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    assert not any("index_V" in name or name.endswith((".near", ".diagonal_N")) for name in checkpoint["state_dict"])
    loaded = SMMDModule.load_from_checkpoint(path)
    assert loaded.objective.loss_weight == cli.model.objective.loss_weight
    for name, value in cli.model.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value)


def test_validate_and_predict_answer_with_a_checkpoint(tmp_path):
    fitted = run_small(tmp_path / "run")
    path = str(tmp_path / "run" / "checkpoints" / "last.ckpt")
    validated = run_small(tmp_path / "run", "--ckpt_path", path, command="validate")
    for name in ("val/loss", "val/ce", "val/numeric", "val/exact_match"):
        assert validated.trainer.callback_metrics[name] == fitted.trainer.callback_metrics[name]
    run_small(tmp_path / "other", "--ckpt_path", path, "--trainer.limit_predict_batches=1", command="predict")
    rows = [json.loads(line) for line in (tmp_path / "other" / "answers.jsonl").read_text().splitlines()]
    assert len(rows) == len({row["id"] for row in rows}) > 0
    assert {"id", "prompt", "truth", "raw", "parsed", "error"} <= set(rows[0])


def test_the_command_line_beats_the_settings_of_a_checkpoint(tmp_path):
    run_small(tmp_path / "run", "--model.loss_weight=0.25", "--model.max_new_tokens=7")
    path = str(tmp_path / "run" / "checkpoints" / "last.ckpt")
    again = run_small(tmp_path / "other", "--ckpt_path", path, "--model.loss_weight=0.75", "--trainer.max_steps=3")
    assert again.model.objective.loss_weight == 0.75
    data = tmp_path / "data.yaml"
    whole = yaml.safe_load(Path(QUICKSTART).read_text())
    shutil.copy(ROOT / "configs" / "data" / "clock_plain.yaml", data)
    only = ["--data", str(data), "--run_dir", str(tmp_path / "third"), "--trainer.accelerator=cpu", *SMALL]
    cli = main(["test", "--ckpt_path", path, *only, "--trainer.limit_test_batches=1"])
    assert cli.model.objective.loss_weight == 0.25  # nothing was said, so the checkpoint's settings hold
    assert cli.model.max_new_tokens == 7
    assert whole["model"]["loss_weight"] != 0.25


def test_a_longer_run_goes_on_with_the_settings_it_is_given(tmp_path):
    run_small(tmp_path / "run", "--model.lr_scheduler.init_args.warmup_steps=0", "--trainer.log_every_n_steps=1")
    more = [
        "--trainer.max_steps=6",
        "--trainer.log_every_n_steps=1",
        "--resume=auto",
        "--model.optimizer.init_args.lr=0.002",
    ]
    more += ["--model.lr_scheduler.init_args.warmup_steps=0", "--model.optimizer.init_args.weight_decay=0.5"]
    cli = run_small(tmp_path / "run", *more)
    (group,) = cli.trainer.optimizers[0].param_groups
    assert group["weight_decay"] == 0.5
    assert group["betas"] == (0.9, 0.98)
    rates = curve(tmp_path / "run", "lr-AdamW")
    assert rates[:2] == pytest.approx([1e-3, 0.5e-3])  # half of two steps
    assert rates[2:] == pytest.approx([2e-3 * left / 6 for left in (4, 3, 2, 1)])


def test_a_rate_that_has_no_schedule_follows_the_settings_too(tmp_path):
    constant = ["--model.lr_scheduler=null"]
    run_small(tmp_path / "run", *constant)
    cli = run_small(
        tmp_path / "run", *constant, "--trainer.max_steps=3", "--resume=auto", "--model.optimizer.init_args.lr=0.5"
    )
    assert cli.trainer.optimizers[0].param_groups[0]["lr"] == 0.5


def test_settings_of_a_checkpoint_come_first(tmp_path):
    path = tmp_path / "a.ckpt"
    torch.save({"hyper_parameters": {"loss_weight": 0.5, "_instantiator": "x"}}, path)
    assert with_checkpoint(["test", "--config", "c.yaml", f"--ckpt_path={path}"]) == [
        "test",
        '--model={"loss_weight": 0.5}',
        "--config",
        "c.yaml",
        f"--ckpt_path={path}",
    ]
    assert with_checkpoint(["fit", "--ckpt_path", "last"]) == ["fit", "--ckpt_path", "last"]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--model.backbone.init_args.pth=x", "pth"),
        ("--model.numeric_loss=NoSuchLoss", "NoSuchLoss"),
        ("--data.init_args.batch_size=many", "batch_size"),
    ],
)
def test_unknown_names_and_wrong_types_stop_before_anything_is_built(argument, message, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run_small(tmp_path / "run", argument)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_processor_follows_the_backbone(tmp_path):
    cli = main(["fit", "--config", QUICKSTART, "--model.backbone.init_args.path=tiny:llava"], run=False)
    assert isinstance(cli, SMMDCLI)
    assert cli.datamodule.processor_path == "tiny:llava"
