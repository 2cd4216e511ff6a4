"""Checkpoints and resuming on two processes."""

import os
import signal

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from stopping import MODELS, Record, Stopped, assert_goes_on, fit, state_of
from sums import SumsData, command, scenario

from smmd_lightning.callbacks import BestAndLast, Preemption
from smmd_lightning.checkpoints import sharded
from smmd_lightning.cli import main
from smmd_lightning.strategies import FSDP1Strategy, FSDP2Strategy

FORMS = {
    "ddp": lambda: "ddp",
    "fsdp2_folder": FSDP2Strategy,
    "fsdp2_file": lambda: FSDP2Strategy(save_distributed_checkpoint=False),
    "fsdp1": FSDP1Strategy,
}


@scenario
def a_stopped_run_ends_as_one_that_was_not(folder):
    """Stopped in an accumulation window, at an epoch's last step, before and after a validation; with workers too."""
    expected = fit(folder / "whole", "ddp", MODELS["lora"], keep=False)
    assert len(expected[0].batches) == 10
    assert expected[0].values[-1][0] == 6
    for stop, workers in ((3, 0), (5, 2), (9, 0)):
        assert_goes_on(folder / "ddp", lambda: "ddp", MODELS["lora"], expected, stop, workers)


@scenario
def a_run_by_number_of_steps_goes_on_exactly(folder):
    """Stopped in its second epoch; or ended by itself and begun again with more steps (at a constant rate)."""
    limits = {"max_steps": 5, "max_epochs": -1, "val_check_interval": 4, "check_val_every_n_epoch": None}
    settings = MODELS["tied"] | {"lr_scheduler": None}
    expected = fit(folder / "whole", FSDP2Strategy(), settings, keep=False, **limits)
    assert_goes_on(folder / "fsdp2", FSDP2Strategy, settings, expected, 6, **limits)
    fit(folder / "short", FSDP2Strategy(), settings, **limits | {"max_steps": 2})
    last = folder / "short" / "checkpoints" / "last.ckpt"
    record, state = fit(folder / "short", FSDP2Strategy(), settings, ckpt=last, keep=False, **limits)
    assert record.batches == expected[0].batches[-len(record.batches) :]
    assert record.values[-1] == expected[0].values[-1]
    assert all(torch.equal(state[name], value) for name, value in expected[1].items())


@scenario
def every_form_of_checkpoint_goes_on_exactly(folder):
    for form, model in (("fsdp2_folder", "lora"), ("fsdp2_file", "tied"), ("fsdp1", "tied")):
        expected = fit(folder / form / "whole", FORMS[form](), MODELS[model], keep=False, max_epochs=1)
        assert_goes_on(folder / form, FORMS[form], MODELS[model], expected, 3, max_epochs=1)


@scenario
def offloading_changes_no_bit_and_goes_on_exactly(folder):
    settings = MODELS["tied"]
    expected = fit(folder / "whole", FSDP2Strategy(), settings, keep=False, max_epochs=1)
    assert_goes_on(folder / "run", lambda: FSDP2Strategy(cpu_offload=True), settings, expected, 3, max_epochs=1)


@scenario
def checkpoints_pass_between_strategies(folder):
    """What one strategy wrote another reads, weights, optimizer and all."""
    for model, settings in MODELS.items():
        reached = {}
        for form in ("ddp", "fsdp2_file", "fsdp2_folder", *(("fsdp1",) if model == "tied" else ())):
            place = folder / model / form
            fit(place, FORMS[form](), settings, stop=3, max_epochs=1)
            last = place / "checkpoints" / "last.ckpt"
            assert last.is_dir() == (form in ("fsdp2_folder", "fsdp1"))
            if "lora" in model:
                assert all("lora" in name for name in sharded.saved_names(last))
            for reader in ("ddp", "fsdp2_folder"):
                copy = folder / model / f"{form}_to_{reader}"
                reached[form, reader] = fit(copy, FORMS[reader](), settings, ckpt=last, keep=False, max_epochs=1)[1]
        first = reached["ddp", "ddp"]
        for pair, state in reached.items():
            assert state.keys() == first.keys(), pair
            for name, value in first.items():
                torch.testing.assert_close(state[name], value, rtol=1e-3, atol=1e-5, msg=f"{pair}: {name}")
    with pytest.raises(ValueError, match="with FSDP1Strategy training goes on from sharded folders only"):
        fit(folder, FSDP1Strategy(), settings, ckpt=folder / "tied" / "ddp" / "checkpoints" / "last.ckpt", keep=False)


@scenario
def a_signal_to_one_process_stops_both_after_the_same_step(folder):
    expected = fit(folder / "whole", "ddp", MODELS["lora"])
    checkpoints = BestAndLast("val/ce", "min", dirpath=str(folder / "checkpoints"))
    record = Record()
    with pytest.raises(SystemExit) as left:
        fit(folder, "ddp", MODELS["lora"], callbacks=[Signal(6, rank=1), checkpoints, record])
    assert left.value.code == 128 + signal.SIGUSR1  # no SLURM here that would give it another turn
    last = folder / "checkpoints" / "last.ckpt"
    assert torch.load(last, weights_only=True)["global_step"] == 4
    second, state = fit(folder, "ddp", MODELS["lora"], ckpt=last)
    assert second.batches == expected[0].batches[-3:]
    assert all(torch.equal(state[name], value) for name, value in expected[1].items())


class Signal(Preemption):
    """Preemption of which one process hears, before a given micro-batch."""

    def __init__(self, place, rank):
        super().__init__()
        self.place, self.rank = place, rank

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.fit_loop.epoch_loop.total_batch_idx, trainer.global_rank) == (self.place, self.rank):
            os.kill(os.getpid(), signal.SIGUSR1)


@scenario
def the_command_line_left_alone(folder):
    """What the job on two nodes, in `test_killed_runs.py`, is compared with."""
    main(command(folder, 2, 1, workers=0)[1:])


@scenario
def two_leave_a_folder(folder):
    """What `one_goes_on_from_a_folder_of_two` reads."""
    for model, settings in MODELS.items():
        fit(folder / model, FSDP2Strategy(), settings, max_epochs=1)


class Start(Callback):
    """Keeps the state that a run begins with, and ends it there."""

    def on_train_start(self, trainer, pl_module):
        self.state = state_of(trainer)
        raise Stopped


def one_goes_on_from_a_folder_of_two(folder):
    """One process gets weights and optimizer of two, but not the rest of their epoch, which it would deal otherwise."""
    for model, settings in MODELS.items():
        last = folder.parent / "two_leave_a_folder" / model / "checkpoints" / "last.ckpt"
        path = settings.get("path", "tiny:llama")
        start = Start()
        # In fours the 19 samples are 5 micro-batches of one process, as they were in twos of each of two.
        data = SumsData(path, train_size=19, eval_size=2, batch_size=4, generation_limit=0)
        fit(folder, FSDP2Strategy(), settings, ckpt=last, devices=1, data=data, callbacks=[start])
        whole = sharded.consolidate(last)
        for name, value in whole["state_dict"].items():
            assert torch.equal(start.state[f"weights.{name}"], value), name
        states = whole["optimizer_states"][0]["state"]
        assert states
        for number, values in states.items():
            for name, value in values.items():
                assert torch.equal(start.state[f"optimizer.{number}.{name}"], torch.as_tensor(value)), (number, name)
        data = SumsData(path, train_size=19, eval_size=2, batch_size=2, generation_limit=0)
        with pytest.raises(ValueError, match="written with 5 micro-batches per epoch and process, now there are 10"):
            fit(folder, FSDP2Strategy(), settings, ckpt=last, devices=1, data=data)
