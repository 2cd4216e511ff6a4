"""A tiny text task and short runs on it, for the tests of this folder."""

import functools

import torch
from lightning.pytorch import Trainer

from datamodules.base import NumericDataModule
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.callbacks import BestAndLast, Guard
from smmd_lightning.types import NumericExample


class Rows:
    """Samples from pairs of question and answer."""

    def __init__(self, pairs):
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def example(self, key):
        question, answer = self.pairs[key.index]
        return NumericExample(f"row-{key.index}", question, answer, meta={"task": "math"})


SUMS = [(f"{k}+{k}?", str(2 * k)) for k in range(8)]


class RowsData(NumericDataModule):
    def __init__(self, processor="tiny:llama", pairs=SUMS, **common):
        super().__init__(processor, **{"batch_size": 2, "generation_limit": 0, **common})
        self.pairs = pairs

    def source(self, split):
        return Rows(self.pairs)


def module(**settings):
    torch.manual_seed(0)
    settings = {"numeric_loss": SMMDLoss(), "backbone": LanguageBackbone("tiny:llama"), **settings}
    optimizer = functools.partial(torch.optim.AdamW, lr=settings.pop("lr", 1e-3))
    return SMMDModule(settings.pop("backbone"), settings.pop("numeric_loss"), 0.5, optimizer=optimizer, **settings)


def trainer(folder, *callbacks, **settings):
    own = [Guard(), BestAndLast("val/loss", "min", dirpath=str(folder / "checkpoints"))]
    kinds = {type(callback) for callback in callbacks}
    given = {
        "accelerator": "cpu",
        "logger": False,
        "max_epochs": 1,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "use_distributed_sampler": False,
        "num_sanity_val_steps": 0,
        "default_root_dir": folder,
        "callbacks": [*(callback for callback in own if type(callback) not in kinds), *callbacks],
    }
    return Trainer(**given | settings)
