"""Nothing from a file runs unless asked for, nothing secret is written, nothing is left open for all to change."""

import json
import os
import pickle
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
import torch
import yaml

from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.backbones.locate import locate
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.checkpoints.files import newest_complete
from smmd_lightning.cli import main
from smmd_lightning.module import SMMDModule

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = str(ROOT / "configs" / "experiment" / "quickstart.yaml")
SMALL = [
    "--trainer.accelerator=cpu",
    "--trainer.max_steps=1",
    "--trainer.limit_val_batches=0",
    "--trainer.num_sanity_val_steps=0",
    "--trainer.enable_progress_bar=false",
    "--data.init_args.limit=4",
    "--data.init_args.batch_size=2",
    "--data.init_args.num_workers=0",
]


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, file):
        self.file = str(file)

    def __reduce__(self):
        return (os.mkdir, (self.file,))


def hostile_checkpoint(folder):
    path = folder / "last.ckpt"
    torch.save({"hyper_parameters": {}, "state_dict": {}, "global_step": 3, "trap": Trap(folder / "sprung")}, path)
    return path


@pytest.mark.parametrize(
    "use",
    [
        lambda path: SMMDModule.load_from_checkpoint(path),
        lambda path: main(
            ["test", "--config", QUICKSTART, "--run_dir", str(path.parent / "r"), "--ckpt_path", str(path)]
        ),
        lambda path: main(
            ["fit", "--config", QUICKSTART, "--run_dir", str(path.parent / "r"), "--ckpt_path", str(path)]
        ),
    ],
    ids=["by hand", "test", "fit"],
)
def test_a_checkpoint_that_holds_code_is_refused_and_the_code_does_not_run(use, tmp_path):
    path = hostile_checkpoint(tmp_path)
    with pytest.raises((pickle.UnpicklingError, ValueError), match=r"(?i)weights.only"):
        use(path)
    assert not (tmp_path / "sprung").exists()


def test_the_search_for_a_checkpoint_to_go_on_from_runs_no_code(tmp_path):
    hostile_checkpoint(tmp_path)
    with pytest.raises(RuntimeError, match=r"No checkpoint in .* can be read"):
        newest_complete(tmp_path)
    assert not (tmp_path / "sprung").exists()


def folder_with_code(tmp_path):
    """A model and a tokenizer that bring Python code; importing it would leave a trace."""
    folder = tmp_path / "model"
    shutil.copytree(locate("tiny:llama"), folder)
    (folder / "code.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'sprung')!r})\n")
    for file in ("config.json", "tokenizer_config.json"):
        settings = json.loads((folder / file).read_text())
        settings["model_type"] = "unheard-of"
        settings["auto_map"] = {
            "AutoConfig": "code.Config",
            "AutoModelForCausalLM": "code.Model",
            "AutoTokenizer": ["code.Tokenizer", None],
        }
        if "tokenizer_class" in settings:
            settings["tokenizer_class"] = "Tokenizer"
        (folder / file).write_text(json.dumps(settings))
    return str(folder)


def test_code_that_comes_with_a_model_does_not_run_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # transformers would ask at a terminal
    folder = folder_with_code(tmp_path)
    with pytest.raises((ValueError, OSError), match="trust_remote_code"):
        LanguageBackbone(folder).load()
    with pytest.raises((ValueError, OSError), match="model"):
        load_processor(folder)
    assert not (tmp_path / "sprung").exists()


def test_keys_of_loggers_are_masked_in_the_saved_config_and_used_in_the_run(tmp_path):
    run = tmp_path / "run"
    logger = [
        {"class_path": "tiny_loggers.Keyed", "init_args": {"save_dir": str(run), "api_key": "s3cret", "name": "x"}}
    ]
    cli = main(["fit", "--config", QUICKSTART, "--run_dir", str(run), *SMALL, f"--trainer.logger={json.dumps(logger)}"])
    assert cli.trainer.logger.api_key == "s3cret"
    written = [file for file in run.rglob("*") if file.is_file()]
    assert any(file.name == "config.yaml" for file in written)
    for file in written:
        raw = file.read_bytes()
        content = raw if not zipfile.is_zipfile(file) else b"".join(_parts(file))
        assert b"s3cret" not in content, file
    (file,) = run.rglob("config.yaml")
    saved = yaml.safe_load(file.read_text())
    assert saved["trainer"]["logger"][0]["init_args"]["api_key"] == "***"
    assert saved["trainer"]["logger"][0]["init_args"]["name"] == "x"


def _parts(file):
    with zipfile.ZipFile(file) as archive:
        return [archive.read(name) for name in archive.namelist()]


def test_a_run_leaves_nothing_that_everybody_may_change(tmp_path):
    before = os.umask(0)
    try:
        main(["fit", "--config", QUICKSTART, "--run_dir", str(tmp_path / "run"), *SMALL])
    finally:
        os.umask(before)
    written = [tmp_path / "run", *(tmp_path / "run").rglob("*")]
    assert len(written) > 5
    for path in written:
        assert not path.stat().st_mode & stat.S_IWOTH, path


def test_a_models_text_stays_text_in_the_report(tmp_path):
    from smmd_lightning.report import write_report

    hostile = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    row = {
        "id": hostile, "task": "math", "prompt": hostile, "truth": "1", "raw": hostile, "parsed": None, "error": None,
        "error_unit": "", "correct": False, "meta": {"task": "math", "kind": hostile},
    }  # fmt: skip
    (tmp_path / "predictions.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "metrics.json").write_text(json.dumps({"test/exact_match": 0.0}))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"run_dir": hostile}))
    page = write_report(tmp_path, predictions="predictions.jsonl", metrics="metrics.json").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
