"""Checkpoints of tiny models that have made one step, with how they were asked."""

import functools

import pytest
import torch
from lightning.pytorch import Trainer

from datamodules import ClockDataModule, DrawnArithmetic, DrawnClocks, TextMathDataModule
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LanguageBackbone, VisionLanguageBackbone

CASES = ("llava", "qwen2-vl", "llama")


def data_of(case):
    if case == "llama":
        drawn = DrawnArithmetic(train_size=4, val_size=2, test_size=4)
        return TextMathDataModule(f"tiny:{case}", drawn, batch_size=2, system_prompt="Be exact.")
    drawn = DrawnClocks(train_size=4, val_size=2, test_size=4, style="plain", image_size=64)
    return ClockDataModule(f"tiny:{case}", drawn, batch_size=2)


@functools.cache
def _made(case, folder):
    torch.manual_seed(0)
    backbone = (LanguageBackbone if case == "llama" else VisionLanguageBackbone)(f"tiny:{case}")
    module = SMMDModule(backbone, SMMDLoss(), 0.5, max_new_tokens=6)
    data = data_of(case)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "limit_val_batches": 0}
    engine = Trainer(accelerator="cpu", max_steps=1, enable_model_summary=False, default_root_dir=folder, **quiet)
    engine.fit(module, data)
    engine.save_checkpoint(folder / "a.ckpt")
    return folder / "a.ckpt"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The function `checkpoint(case)`, which returns a file; one a case and session."""
    folder = functools.cache(lambda case: tmp_path_factory.mktemp(f"reading-{case}"))
    return lambda case: _made(case, folder(case))


@pytest.fixture
def data():
    """The function `data(case)`, which returns the data module that the case was trained on."""
    return data_of
