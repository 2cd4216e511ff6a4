"""Averaged weights, an adapter, and checkpoints of the trained weights alone."""

import sys
from pathlib import Path

import torch
from lightning.pytorch.callbacks import EMAWeightAveraging

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from smmd_lightning.backbones import LanguageBackbone, LoRA


def fit(folder, steps, checkpoint=None):
    made = module(backbone=LanguageBackbone("tiny:llama", adapter=LoRA(rank=2)), save_trained_only=True)
    run = trainer(folder, EMAWeightAveraging(decay=0.5), max_epochs=-1, max_steps=steps, val_check_interval=2)
    run.fit(made, RowsData(), ckpt_path=checkpoint, weights_only=True)
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)


def test_a_run_that_goes_on_averages_as_one_left_alone(tmp_path):
    fit(tmp_path / "stopped", 2)
    stopped = fit(tmp_path / "stopped", 4, tmp_path / "stopped" / "checkpoints" / "last.ckpt")
    alone = fit(tmp_path / "alone", 4)
    assert any("lora_A" in name for name in alone["state_dict"])
    for part in ("state_dict", "current_model_state"):
        assert stopped[part].keys() == alone[part].keys()
        assert all("lora" in name for name in alone[part])
        for name, value in alone[part].items():
            assert torch.equal(stopped[part][name], value), (part, name)
