"""When checkpoints are written, and when not."""

import sys
import warnings
from pathlib import Path

import pytest
from lightning.pytorch.callbacks import Callback

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer


class Validations(Callback):
    def __init__(self):
        self.steps = []

    def on_validation_end(self, trainer, pl_module):
        self.steps.append(trainer.global_step)


def fit(folder, **settings):
    """Goes on with a run in `folder`, or starts it; returns the steps after which it validated."""
    seen, last = Validations(), folder / "checkpoints" / "last.ckpt"
    trainer(folder, seen, **settings).fit(
        module(), RowsData(), ckpt_path=str(last) if last.exists() else None, weights_only=True
    )
    return seen.steps


@pytest.mark.parametrize("interval", [1.0, 3])
def test_a_finished_run_given_again_changes_nothing_and_goes_on_as_it_would_have(tmp_path, interval):
    for name, times in (("once", 1), ("again", 3)):
        for _ in range(times):
            fit(tmp_path / name, max_epochs=1, val_check_interval=interval)
    last = tmp_path / "again" / "checkpoints" / "last.ckpt"
    before = last.read_bytes()
    fit(tmp_path / "again", max_epochs=1, val_check_interval=interval)
    assert last.read_bytes() == before
    longer = {"max_epochs": 3, "val_check_interval": interval}
    assert fit(tmp_path / "again", **longer) == fit(tmp_path / "once", **longer)


def test_a_run_that_ends_before_its_first_validation_has_a_last_checkpoint_and_no_warning(tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit(tmp_path, max_epochs=-1, max_steps=2)
    assert not [each for each in said if "monitored key" in str(each.message)]
    assert [file.name for file in (tmp_path / "checkpoints").iterdir()] == ["last.ckpt"]
