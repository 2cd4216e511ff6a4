"""The training loader ends windows and epochs where Lightning does, or the setting is refused."""

from types import SimpleNamespace

import pytest
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import GradientAccumulationScheduler

from datamodules import DrawnClocks
from datamodules.clock import ClockDataModule
from datamodules.pipeline.trainer_rules import micro_batches

REFUSED = {
    "overfit_batches": ({"overfit_batches": 2}, r"overfit_batches=2 would not repeat.*set data\.limit"),
    "reloading": ({"reload_dataloaders_every_n_epochs": 3}, r"reload_dataloaders_every_n_epochs=3.*Set it to 0"),
    "scheduler": (
        {"callbacks": [GradientAccumulationScheduler({0: 4})]},
        r"GradientAccumulationScheduler changes.*set trainer\.accumulate_grad_batches",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_move_windows_or_epochs_are_refused_before_weights_load(name, tmp_path):
    settings, message = REFUSED[name]
    data = ClockDataModule("tiny:llava", DrawnClocks(train_size=2, image_size=64))
    data.trainer = Trainer(accelerator="cpu", logger=False, default_root_dir=tmp_path, **settings)
    with pytest.raises(ValueError, match=message):
        data.setup("fit")
    data.setup("test")


@pytest.mark.parametrize(("limit", "expected"), [(6, 6), (20, 12), (0.55, 6), (1.0, 12)])
def test_an_epoch_ends_after_a_number_or_a_share_of_micro_batches(limit, expected):
    assert micro_batches(SimpleNamespace(limit_train_batches=limit), 12) == expected
    assert micro_batches(None, 12) == 12
