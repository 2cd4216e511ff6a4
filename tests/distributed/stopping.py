"""Small runs that can be stopped and gone on with, and what is kept of them to compare."""

import functools
import shutil

import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import Callback
from sums import SumsData, module, trainer

from smmd_lightning.backbones import LoRA
from smmd_lightning.callbacks import BestAndLast
from smmd_lightning.checkpoints import sharded
from smmd_lightning.checkpoints.files import AtomicCheckpointIO
from smmd_lightning.schedules import WarmupDecay

MODELS = {
    "lora": {"backbone": {"adapter": LoRA(rank=2, dropout=0.1)}, "save_trained_only": True},
    "tied": {"path": "tiny:qwen2", "backbone": {"gradient_checkpointing": True}},
}


class Stopped(Exception):
    pass


class Record(Callback):
    """Keeps what a run saw: ids of each micro-batch, values of each step and validation; stops where it is told to."""

    def __init__(self, stop=None):
        self.batches, self.values, self.stop = [], [], stop

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.batches.append([example.id for example in batch.examples])
        if batch.window_end:
            logged = {name: float(value) for name, value in trainer.callback_metrics.items() if "train/" in name}
            self.values.append((trainer.global_step, trainer.current_epoch, logged))

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if self.stop == trainer.fit_loop.epoch_loop.total_batch_idx:
            raise Stopped

    def on_validation_end(self, trainer, pl_module):
        if not trainer.sanity_checking:
            logged = {name: float(value) for name, value in trainer.callback_metrics.items() if "val/" in name}
            self.values.append((trainer.global_step, "validation", logged))


def state_of(engine):
    """Weights and optimizer state by parameter, whole, on process 0; nothing elsewhere."""
    strategy = engine.strategy
    if hasattr(strategy, "sharded_checkpoints"):
        weights = sharded.weights(strategy.model, whole=True)
        optimizer = sharded.optimizer_state(strategy.model, engine.optimizers[0], whole=True)
    else:
        weights, optimizer = strategy.lightning_module_state_dict(), engine.optimizers[0].state_dict()
    if dist.is_initialized() and dist.get_rank() != 0:
        return {}
    flat = {f"weights.{name}": value.clone() for name, value in weights.items()}
    for number, values in optimizer["state"].items():
        flat |= {f"optimizer.{number}.{name}": torch.as_tensor(value).clone() for name, value in values.items()}
    return flat


def fit(folder, strategy, settings, *, ckpt=None, stop=None, keep=True, workers=0, data=None, **engine_settings):
    """One run of 2 epochs x 5 micro-batches, accumulation 2, validation inside the epochs, a schedule.

    `keep` says whether it writes checkpoints, which must not change it.
    """
    record = Record(stop)
    checkpoints = BestAndLast("val/ce", "min", dirpath=str(folder / "checkpoints"), every_n_train_steps=1)
    engine = trainer(**{
        "strategy": strategy,
        "devices": 2,
        "max_epochs": 2,
        "accumulate_grad_batches": 2,
        "limit_val_batches": 1.0,
        "val_check_interval": 3,
        "num_sanity_val_steps": 0,
        "gradient_clip_val": 1.0,
        "enable_checkpointing": keep,
        "callbacks": [record, checkpoints] if keep else [record],
        "plugins": [AtomicCheckpointIO()],
        "default_root_dir": folder,
    } | engine_settings)  # fmt: skip
    made = module(**{"lr_scheduler": functools.partial(WarmupDecay, warmup_steps=2)} | settings)
    data = data or SumsData(
        settings.get("path", "tiny:llama"),
        train_size=19,
        eval_size=5,
        batch_size=2,
        num_workers=workers,
        generation_limit=0,
    )
    try:
        engine.fit(made, data, ckpt_path=ckpt)
    except Stopped:
        return record, None
    return record, state_of(engine)


def assert_goes_on(folder, strategy, settings, expected, stop, workers=0, **engine_settings):
    """Stops a run at a micro-batch, goes on in new objects, compares everything with the run that was not stopped."""
    whole, state = expected
    if dist.get_rank() == 0:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    dist.barrier()
    first, _ = fit(folder, strategy(), settings, stop=stop, workers=workers, **engine_settings)
    last = folder / "checkpoints" / "last.ckpt"
    second, again = fit(folder, strategy(), settings, ckpt=last, workers=workers, **engine_settings)
    assert again.keys() == state.keys()
    for name, value in state.items():
        assert torch.equal(again[name], value), (stop, name, (again[name] - value).abs().max())
    tail = second.batches
    assert whole.batches[len(whole.batches) - len(tail) :] == tail, (stop, tail)
    assert len(first.batches) + len(tail) >= len(whole.batches), (stop, "micro-batches were left out")
    seen = {(step, what): values for step, what, values in [*first.values, *second.values]}
    assert seen == {(step, what): values for step, what, values in whole.values}, (stop, seen)
