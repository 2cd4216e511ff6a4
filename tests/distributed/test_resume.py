"""Stopping and going on in one process, in new objects each time; compared bit by bit with a run left alone."""

import os
import signal

import pytest
import torch
from stopping import MODELS, Record, fit
from sums import SumsData

from smmd_lightning.balance import WeightBalance
from smmd_lightning.callbacks import Preemption
from smmd_lightning.callbacks.best_and_last import BestAndLast
from smmd_lightning.checkpoints.resume import draw_anew


class Strikes(Preemption):
    """Preemption that is asked for before a given micro-batch."""

    def __init__(self, place, number):
        super().__init__()
        self.place, self.number = place, number

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.fit_loop.epoch_loop.total_batch_idx == self.place:
            os.kill(os.getpid(), self.number)


AUTO = {"weight": "auto", "weight_balance": WeightBalance(steps=3)}


def run(folder, model=(), **settings):
    data = SumsData(train_size=10, eval_size=3, batch_size=2, generation_limit=0)
    return fit(folder, "auto", MODELS["lora"] | dict(model), devices=1, data=data, **settings)


def last_of(folder):
    return folder / "checkpoints" / "last.ckpt"


def assert_like(alone, first_values, second):
    record, state = second
    for name, value in alone[1].items():
        assert torch.equal(state[name], value), name
    assert alone[0].batches[-len(record.batches) :] == record.batches
    seen = {(step, what): values for step, what, values in [*first_values, *record.values]}
    assert seen == {(step, what): values for step, what, values in alone[0].values}


@pytest.mark.parametrize("stop", [0, 2, 4, 8])
def test_a_run_stopped_at_any_micro_batch_goes_on_exactly(stop, tmp_path):
    alone = run(tmp_path / "alone")
    first, _ = run(tmp_path / "run", stop=stop)
    last = last_of(tmp_path / "run")
    assert last.exists() == (stop >= 2)
    assert_like(alone, first.values, run(tmp_path / "run", ckpt=last if last.exists() else None))


@pytest.mark.parametrize("stop", [3, 9])  # three steps of two micro-batches are measured
def test_a_weight_found_by_gradients_is_the_same_after_going_on(stop, tmp_path):
    alone = run(tmp_path / "alone", AUTO)
    weights = [values["train/loss_weight"] for _, what, values in alone[0].values if what != "validation"]
    assert weights[:3] == [0.0] * 3
    assert weights[3] > 0
    assert weights[3:] == [weights[3]] * (len(weights) - 3)
    first, _ = run(tmp_path / "run", AUTO, stop=stop)
    assert_like(alone, first.values, run(tmp_path / "run", AUTO, ckpt=last_of(tmp_path / "run")))


def test_a_validation_that_was_due_when_a_signal_came_runs_on_going_on(tmp_path):
    """With validation every two micro-batches, one is due right after the step in which the signal comes."""
    often = {"val_check_interval": 2}
    alone = run(tmp_path / "alone", **often)
    strikes = Strikes(1, signal.SIGTERM)
    record = Record()
    checkpoints = BestAndLast("val/ce", "min", dirpath=str(tmp_path / "run" / "checkpoints"), every_n_train_steps=1)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left:
        run(tmp_path / "run", callbacks=[strikes, record, checkpoints], **often)
    assert left.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before
    assert [values[:2] for values in record.values] == []  # left before anything else could look at the step
    checkpoint = torch.load(last_of(tmp_path / "run"), weights_only=True)
    assert checkpoint["global_step"] == 1
    second = run(tmp_path / "run", ckpt=last_of(tmp_path / "run"), **often)
    assert second[0].values[0][:2] == (1, "validation")
    assert_like(alone, alone[0].values[:1], second)


def test_the_last_checkpoint_needs_no_validation_and_never_replaces_its_result(tmp_path):
    run(tmp_path, stop=2)  # before the first validation
    assert torch.load(last_of(tmp_path), weights_only=True)["global_step"] == 1
    assert not (tmp_path / "checkpoints" / "best.ckpt").exists()
    run(tmp_path, ckpt=last_of(tmp_path))
    best = torch.load(tmp_path / "checkpoints" / "best.ckpt", weights_only=True)
    scores = [state["best_model_score"] for key, state in best["callbacks"].items() if "BestAnd" in key]
    assert torch.isfinite(scores[0])
    assert torch.load(last_of(tmp_path), weights_only=True)["global_step"] == 6


def test_how_often_to_write_is_checked():
    with pytest.raises(ValueError, match="every_n_train_steps must be at least 1, got 0"):
        BestAndLast(every_n_train_steps=0)


def test_random_numbers_depend_on_the_place_alone():
    seen = set()
    for place in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]:
        draw_anew(2**63 + 5, *place)
        first = torch.rand(3)
        torch.rand(7)
        draw_anew(2**63 + 5, *place)
        assert torch.equal(torch.rand(3), first)
        seen.add(tuple(first.tolist()))
    assert len(seen) == 4
