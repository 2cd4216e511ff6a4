"""Runs that cannot become good end with a reason, and leave good checkpoints behind."""

import gc
import json
import signal
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from smmd_lightning.callbacks import BestAndLast, Guard
from smmd_lightning.callbacks.guard import advice_on, largest_gradient


def spoiled(steps, value=float("nan")):
    """A module whose loss is no number in some optimizer steps."""
    made = module()
    compute = made.training_step

    def training_step(batch, batch_idx):
        loss = compute(batch, batch_idx)
        return loss * value if made.global_step in steps else loss

    made.training_step = training_step
    return made


class Weights(Callback):
    """The weights after every optimizer step."""

    def __init__(self):
        self.seen = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.seen.append({name: value.clone() for name, value in pl_module.state_dict().items()})


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_step_whose_loss_is_no_number_is_not_applied_and_its_samples_are_written_down(value, tmp_path, caplog):
    weights = Weights()
    run = trainer(tmp_path, weights)
    run.fit(spoiled({1}, value), RowsData())
    assert run.global_step == 4
    assert same(weights.seen[0], weights.seen[1])
    assert not same(weights.seen[1], weights.seen[2])
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.seen[-1].values())
    (line,) = [json.loads(line) for line in (tmp_path / "bad_steps.jsonl").read_text().splitlines()]
    assert (line["step"], line["rank"], line["loss"]) == (1, 0, str(value))
    assert len(line["ids"]) == 2
    assert all(name.startswith("row-") for name in line["ids"])
    assert f"step 1: the loss is {value} and the largest gradient nan, so the step is not applied" in caplog.text


def test_several_in_a_row_end_the_run_and_the_last_good_checkpoint_stays(tmp_path):
    weights = Weights()
    last = BestAndLast("val/loss", "min", dirpath=str(tmp_path / "checkpoints"), every_n_train_steps=1)
    run = trainer(tmp_path, weights, last, max_epochs=3)
    with pytest.raises(RuntimeError, match=r"in 3 optimizer steps in a row.*step 4.*bad_steps.jsonl.*learning rate"):
        run.fit(spoiled({2, 3, 4, 5}), RowsData())
    kept = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert same(kept, weights.seen[1])
    assert len((tmp_path / "bad_steps.jsonl").read_text().splitlines()) == 3


def test_good_steps_in_between_start_the_count_anew(tmp_path):
    run = trainer(tmp_path, Guard(max_bad_steps=2), max_epochs=2)
    run.fit(spoiled({1, 3, 5}), RowsData())
    assert run.global_step == 8


def test_one_bad_micro_batch_spoils_its_whole_accumulation_window(tmp_path):
    made, weights = module(), Weights()
    compute = made.training_step
    made.training_step = lambda batch, batch_idx: compute(batch, batch_idx) * (float("nan") if batch_idx == 2 else 1)
    trainer(tmp_path, weights, accumulate_grad_batches=2).fit(made, RowsData())
    assert same(weights.seen[1], weights.seen[3])
    (line,) = [json.loads(line) for line in (tmp_path / "bad_steps.jsonl").read_text().splitlines()]
    assert len(line["ids"]) == 4


@pytest.mark.parametrize("value", [float("nan"), -float("inf")])
def test_a_gradient_that_is_no_number_is_not_applied_though_the_loss_is_one(value, tmp_path):
    """As of a square root at zero: the loss is finite, and the weights would be NaN for good."""
    made, weights = module(), Weights()
    made.configure_model()
    parameter = list(made.parameters())[-1]
    spoil = torch.zeros_like(parameter)
    spoil.view(-1)[-1] = value
    parameter.register_hook(lambda gradient: gradient + spoil if made.global_step == 1 else gradient)
    run = trainer(tmp_path, weights)
    run.fit(made, RowsData())
    assert run.global_step == 4
    assert same(weights.seen[0], weights.seen[1])
    assert not same(weights.seen[1], weights.seen[2])
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.seen[-1].values())
    (line,) = [json.loads(line) for line in (tmp_path / "bad_steps.jsonl").read_text().splitlines()]
    assert (line["step"], line["gradient"]) == (1, str(abs(value)))
    assert float(line["loss"]) > 0


def test_large_gradients_in_half_precision_are_no_fault():
    made = torch.nn.Linear(4, 4).half()
    for parameter in made.parameters():
        parameter.grad = torch.full_like(parameter, 6e4)
    assert float(largest_gradient(made)) == pytest.approx(6e4, rel=1e-3)
    assert float(largest_gradient(torch.nn.Linear(1, 1))) == 0  # no gradient at all


def test_half_precision_scaling_still_lowers_its_scale(tmp_path):
    """The scaler must see the gradients; it passes over the step by itself."""
    guard, parameter = Guard(), torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.full((1,), float("nan"))
    run = trainer(tmp_path, guard)
    run.precision_plugin.scaler = object()
    guard.on_before_backward(run, None, torch.tensor(float("nan")))
    guard.on_before_optimizer_step(run, None, torch.optim.SGD([parameter]))
    assert parameter.grad is not None
    assert (guard.in_a_row, guard.total) == (1, 1)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_value_that_is_no_number_never_becomes_best(mode, tmp_path):
    values = {1: float("nan"), 2: float("inf"), 3: -float("inf"), 4: 2.0}
    made = module()
    made.on_validation_epoch_end = lambda: made.log("val/score", values.get(made.current_epoch + 1, 0.0))
    found = []

    class Look(Callback):
        def on_train_epoch_start(self, trainer, pl_module):
            found.append((tmp_path / "checkpoints" / "best.ckpt").exists())

    run = trainer(tmp_path, BestAndLast("val/score", mode, dirpath=str(tmp_path / "checkpoints")), Look(), max_epochs=5)
    run.fit(made, RowsData())
    assert found == [False, False, False, False, True]
    assert (tmp_path / "checkpoints" / "last.ckpt").exists()
    assert float(run.checkpoint_callback.best_model_score) == {"min": 0.0, "max": 2.0}[mode]


def test_weights_that_are_no_numbers_never_become_best_though_their_metric_is_one(tmp_path):
    """A model of NaN answers nothing right, and 0 is as good a score as any."""
    made = module()
    made.configure_model()
    with torch.no_grad():
        next(iter(made.parameters())).fill_(float("nan"))
    made._log_metrics = lambda stage: made.log(f"{stage}/score", 0.0)
    best = BestAndLast("val/score", "max", dirpath=str(tmp_path / "checkpoints"))
    trainer(tmp_path, best, Guard(max_bad_steps=100)).fit(made, RowsData())
    assert not (tmp_path / "checkpoints" / "best.ckpt").exists()
    assert (tmp_path / "checkpoints" / "last.ckpt").exists()


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "Lower data.batch_size and raise"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "Out of memory"),
        (MemoryError(), "Out of memory"),
        (RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly"), "Lower data.num_workers"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."), "worker process died"),
    ],
)
def test_known_causes_come_with_advice_behind_their_own_message(error, advice, tmp_path):
    made = module()
    made.training_step = lambda batch, batch_idx: (_ for _ in ()).throw(error)
    with pytest.raises(type(error)) as raised:
        trainer(tmp_path).fit(made, RowsData())
    assert raised.value is error
    (note,) = raised.value.__notes__
    assert advice in note


def test_other_errors_are_left_alone():
    assert advice_on(ValueError("batch_size must be at least 1")) is None


class DiesOnce:
    """A source whose worker process ends without a word."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def example(self, key):
        import os

        from torch.utils.data import get_worker_info

        if key.index == 5 and get_worker_info() is not None:  # the process that trains looks at samples too
            os._exit(9)
        return self.inner.example(key)


def test_a_killed_loader_worker_is_an_error_with_advice(tmp_path):
    class Data(RowsData):
        def source(self, split):
            return DiesOnce(super().source(split))

    with pytest.raises(RuntimeError, match="DataLoader worker") as raised:
        trainer(tmp_path, limit_val_batches=0).fit(module(), Data(num_workers=1))
    # Until the dead worker is forgotten, torch raises again whenever any child process ends: in another test, say.
    torch_reports = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # torch reports the death from a signal handler as well, which may come while the first error is dealt with.
    errors = [raised.value]
    while errors[-1].__context__ is not None:
        errors.append(errors[-1].__context__)
    notes = [note for error in errors for note in getattr(error, "__notes__", [])]
    assert any("0 shows the error of a sample itself" in note for note in notes)
    del raised, errors
    gc.collect()
    signal.signal(signal.SIGCHLD, torch_reports)
    torch._C._error_if_any_worker_fails()


def test_nonsense_settings_are_named():
    with pytest.raises(ValueError, match="max_bad_steps must be at least 1, got 0"):
        Guard(max_bad_steps=0)


@pytest.mark.parametrize(
    ("monitor", "mode"), [("val/exact_match", "max"), ("val/loss", "min"), ("val/median_error_minutes", "min")]
)
def test_whether_more_is_better_follows_from_the_name(monitor, mode):
    assert BestAndLast(monitor).mode == mode
    assert BestAndLast(monitor, mode="max").mode == "max"
