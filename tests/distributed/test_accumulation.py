"""One process that accumulates; two that do are in `scenario_training.py`."""

import pytest
import torch
from lightning.pytorch import Callback
from scenario_training import LOSSES, of_one_batch
from sums import Gradients, Sums, SumsData, assert_near, module, trainer

from smmd_lightning.types import SampleKey


@pytest.mark.parametrize("loss", LOSSES)
def test_four_micro_batches_give_the_gradient_of_one(loss, tmp_path):
    expected = of_one_batch(module(*LOSSES[loss]), SumsData(batch_size=16))
    seen = Gradients()
    engine = trainer(devices=1, accumulate_grad_batches=4, callbacks=[seen], default_root_dir=tmp_path)
    engine.fit(module(*LOSSES[loss]), SumsData(batch_size=4))
    assert len(seen.steps) == 1
    assert_near(seen.steps[0], expected)


class Steps(Gradients):
    """Keeps the samples of every optimizer step too."""

    def __init__(self):
        super().__init__()
        self.keys = [[]]

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.keys[-1] += batch.keys

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        super().on_before_optimizer_step(trainer, pl_module, optimizer)
        self.keys.append([])


@pytest.mark.parametrize("limit", [6, 0.75])
def test_a_window_that_the_epochs_end_cuts_short_divides_by_what_it_holds(limit, tmp_path):
    """Of 8 micro-batches 6 make an epoch, so of each epoch's two windows one has 4 of them and one has 2."""
    made, data, seen = module(optimizer=torch.optim.SGD, lr=0.0), SumsData(batch_size=2), Steps()
    settings = {"max_epochs": 2, "accumulate_grad_batches": 4, "limit_train_batches": limit}
    trainer(devices=1, callbacks=[seen], default_root_dir=tmp_path, **settings).fit(made, data)
    assert [(len(keys), {key.epoch for key in keys}) for keys in seen.keys] == [
        *((8, {0}), (4, {0}), (8, {1}), (4, {1})),
        (0, set()),
    ]
    for keys, found in zip(seen.keys, seen.steps, strict=False):
        assert_near(found, of_samples(made, data, keys))


def of_samples(made, data, keys):
    made.zero_grad()
    batch = data.collator([Sums(16).example(SampleKey(*key)) for key in keys])
    made.objective(made.backbone, batch.inputs, batch.labels).loss.backward()
    return {name: value.grad for name, value in made.named_parameters() if value.grad is not None}


class Leave(Callback):
    """Ends training inside an accumulation window."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        trainer.should_stop = batch_idx == 1


def test_a_window_left_open_does_not_count_in_the_next_fit(tmp_path):
    made, data, seen = module(optimizer=torch.optim.SGD, lr=0.0), SumsData(train_size=8, batch_size=4), Steps()
    settings = {"devices": 1, "accumulate_grad_batches": 4, "default_root_dir": tmp_path}
    trainer(**settings, callbacks=[Leave()]).fit(made, SumsData(batch_size=4))
    assert made._window.micro_batches == 2
    trainer(**settings, callbacks=[seen]).fit(made, data)
    assert_near(seen.steps[0], of_samples(made, data, seen.keys[0]))
