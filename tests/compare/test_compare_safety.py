"""What a comparison writes holds no keys, and is not for everybody to change."""

import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from smmd_lightning.commands.compare import main
from smmd_lightning.compare import figures as plots
from smmd_lightning.compare import one_run

CONFIGS = Path(__file__).parent.parent.parent / "configs"
KEY = "s3cret-key-of-a-logger"


def grid(folder, **logger):
    """One run of two steps with a logger that wants a key."""
    init = {"save_dir": str(folder / "logs"), "proof": str(folder / "proof"), "api_key": KEY, **logger}
    settings = {
        "tasks": {"arithmetic": {"config": str(CONFIGS / "compare" / "tasks" / "arithmetic.yaml")}},
        "losses": {"ce": {"label": "CE"}},
        "seeds": [1],
        "program": None,
        "overrides": {
            "model": {"backbone": {"init_args": {"path": "tiny:llama"}}, "max_new_tokens": 3},
            "data": {"init_args": {"batch_size": 4, "generation_limit": 4, "limit": 8}},
            "trainer": {
                "accelerator": "cpu", "max_steps": 2, "val_check_interval": 2, "num_sanity_val_steps": 0,
                "logger": [{"class_path": "told_logger.Told", "init_args": init}],
            },
            "results": {"save_images": 0, "report": True},
        },
    }  # fmt: skip
    (folder / "grid.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return ["--config", str(folder / "grid.yaml"), "--out", str(folder / "out")]


def written(folder):
    return [path for path in (folder / "out").rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def with_the_logger(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(plots, "available", lambda: False)


def test_a_key_reaches_the_run_and_no_file_and_no_file_is_for_everybody(tmp_path):
    before = os.umask(0)
    try:
        assert main(grid(tmp_path)) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "proof").read_text() == sha256(KEY.encode()).hexdigest()
    files = written(tmp_path)
    assert {"settings.yaml", "config.yaml", "order.json", "log.txt", "report.html"} <= {file.name for file in files}
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
    (file,) = (file for file in files if file.name == "settings.yaml")
    (logger,) = yaml.safe_load(file.read_text())["trainer"]["logger"]
    assert logger["init_args"]["api_key"] == "***"
    assert logger["init_args"]["proof"] == str(tmp_path / "proof")
    open_to_all = [path for path in (tmp_path / "out").rglob("*") if path.stat().st_mode & stat.S_IWOTH]
    assert open_to_all == []


def test_a_run_that_fails_over_its_settings_does_not_tell_the_key(tmp_path, capsys):
    assert main(grid(tmp_path, no_such_setting=1)) == 1
    out, err = capsys.readouterr()
    assert KEY not in out + err
    (log,) = (file for file in written(tmp_path) if file.name == "log.txt")
    assert "no_such_setting" in log.read_text()
    assert [file for file in written(tmp_path) if KEY.encode() in file.read_bytes()] == []


def test_masked_settings_alone_do_not_start_a_run(tmp_path, monkeypatch):
    monkeypatch.delenv(one_run.WHOLE_SETTINGS, raising=False)
    (tmp_path / one_run.ORDER).write_text(json.dumps({"masked": True, "stage": "test", "checkpoint": "last"}))
    with pytest.raises(RuntimeError, match=r"settings\.yaml shows \*\*\* in place of keys"):
        one_run.main([str(tmp_path)])
