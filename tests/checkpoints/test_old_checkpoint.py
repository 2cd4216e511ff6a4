"""A checkpoint that was written before the modules moved into rooms loads, is gone on with, and is exported.

`fixtures/checkpoint_before_rooms.ckpt` is the `last.ckpt` of three steps of `checkpoint_before_rooms.yaml`: a LoRA of
rank 1 on `tiny:llama`, trained weights alone.
"""

import shutil
from pathlib import Path

import pytest
import torch

from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.cli import main
from smmd_lightning.commands.export import export

FIXTURES = Path(__file__).parent.parent / "fixtures"
OLD, CONFIG = FIXTURES / "checkpoint_before_rooms.ckpt", FIXTURES / "checkpoint_before_rooms.yaml"


@pytest.fixture
def saved():
    return torch.load(OLD, weights_only=True)


def test_it_loads_by_path_alone(saved):
    module = SMMDModule.load_from_checkpoint(OLD, weights_only=True)
    assert isinstance(module.objective.numeric_loss, SMMDLoss)
    own = module.state_dict()
    assert len(saved["state_dict"]) > 0
    assert all(torch.equal(own[name], value) for name, value in saved["state_dict"].items())


def test_a_run_goes_on_from_it(tmp_path, saved):
    (tmp_path / "checkpoints").mkdir()
    shutil.copy(OLD, tmp_path / "checkpoints" / "last.ckpt")
    fit = ["fit", "--config", str(CONFIG), "--run_dir", str(tmp_path), "--resume", "auto", "--trainer.max_steps", "5"]
    assert main(fit).trainer.global_step == 5
    written = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert written["state_dict"].keys() == saved["state_dict"].keys()
    assert any(not torch.equal(value, saved["state_dict"][name]) for name, value in written["state_dict"].items())
    states = written["optimizer_states"][0]["state"], saved["optimizer_states"][0]["state"]
    assert [{int(state["step"]) for state in each.values()} for each in states] == [{5}, {3}]


def test_it_is_tested_and_exported(tmp_path):
    common = ["--config", str(CONFIG), "--run_dir", str(tmp_path / "run"), "--ckpt_path", str(OLD)]
    assert main(["test", *common]).trainer.callback_metrics["test/samples"] == 8
    assert (export(OLD, tmp_path / "model") / "model.safetensors").exists()
