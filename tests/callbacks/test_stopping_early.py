"""What watches a metric acts after every validation, and a run that goes on does not forget it."""

import functools
import sys
from pathlib import Path

import pytest
from lightning.pytorch import cli
from lightning.pytorch.callbacks import Callback, EarlyStopping

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from smmd_lightning.callbacks import StoppingEarly


class Rates(Callback):
    def __init__(self):
        self.rates = []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        self.rates.append(optimizer.param_groups[0]["lr"])


def plateau(**settings):
    """Halves the rate at every validation: nothing is ever better by half."""
    return functools.partial(
        cli.ReduceLROnPlateau, **{"monitor": "val/ce", "patience": 0, "factor": 0.5, "threshold": 0.9, **settings}
    )


def test_a_plateau_acts_within_an_epoch_and_by_its_own_metric(tmp_path):
    seen = Rates()
    made = module(lr_scheduler=plateau(), lr=0.1)
    trainer(tmp_path, seen, max_epochs=1, val_check_interval=1).fit(made, RowsData())
    # The first validation is the best so far; the next ones halve the rate for the step after them.
    assert seen.rates == [0.1, 0.1, 0.05, 0.025]


def test_a_metric_that_is_not_logged_is_named_with_those_that_are(tmp_path):
    made = module(lr_scheduler=plateau(monitor="val/other"))
    with pytest.raises(ValueError, match=r"waits for 'val/other', but validation logs only .*val/ce"):
        trainer(tmp_path, max_epochs=1, num_sanity_val_steps=0).fit(made, RowsData())


def stopping(**settings):
    """Stops at the second validation: nothing is ever better by so much."""
    return EarlyStopping(**{"monitor": "val/ce", "patience": 1, "min_delta": 100.0, **settings})


def fit(folder, early, **settings):
    made = trainer(folder, StoppingEarly(), early, max_epochs=9, **settings)
    last = folder / "checkpoints" / "last.ckpt"
    made.fit(module(), RowsData(), ckpt_path=last if last.exists() else None, weights_only=True)
    return made


def test_a_run_that_stopped_early_stays_stopped_until_its_patience_is_raised(tmp_path):
    assert fit(tmp_path, stopping()).global_step == 8
    before = (tmp_path / "checkpoints" / "last.ckpt").read_bytes()
    assert fit(tmp_path, stopping()).global_step == 8
    assert (tmp_path / "checkpoints" / "last.ckpt").read_bytes() == before
    assert fit(tmp_path, stopping(patience=2)).global_step == 12


def test_fewer_steps_than_an_epoch_end_without_a_check(tmp_path):
    assert fit(tmp_path, stopping(), max_steps=2).global_step == 2
    assert (tmp_path / "checkpoints" / "last.ckpt").exists()


@pytest.mark.parametrize(
    ("early", "settings", "message"),
    [
        ({"check_on_train_epoch_end": True}, {}, "would lose that check"),
        ({"mode": "max"}, {}, r"mode=max, but less of val/ce is better. Set mode: min"),
        ({}, {"val_check_interval": 3, "accumulate_grad_batches": 2}, "inside an accumulation window of 2"),
        ({}, {"limit_val_batches": 0}, "waits for a validation, but trainer.limit_val_batches=0"),
    ],
)
def test_early_stopping_that_cannot_be_meant_is_refused_before_weights_load(tmp_path, early, settings, message):
    with pytest.raises(ValueError, match=message):
        fit(tmp_path, stopping(**early), **settings)
    assert not list(tmp_path.rglob("*.ckpt"))


def test_a_share_of_an_epoch_that_ends_inside_a_window_is_refused_once_its_length_is_known(tmp_path):
    with pytest.raises(ValueError, match="every 1 micro-batches would come inside an accumulation window of 2"):
        fit(tmp_path, stopping(), val_check_interval=0.25, accumulate_grad_batches=2)
    assert fit(tmp_path, stopping(), val_check_interval=0.5, accumulate_grad_batches=2).global_step == 2
