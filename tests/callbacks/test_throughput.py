"""Speed, on a clock that the test turns."""

from types import SimpleNamespace

import pytest
import torch

from smmd_lightning.callbacks import Throughput, throughput
from smmd_lightning.types import Batch


class Clock:
    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(throughput, "time", made)
    return made


def micro_batch(end):
    ids = torch.zeros(4, 5, dtype=torch.long)
    return Batch(inputs={"input_ids": ids}, labels=ids, examples=[], counted=[True, True, True, False], window_end=end)


def train(callback, clock, trainer, steps, loader=1.0, engine=1.0, compute=2.0, start=0):
    """Steps of two micro-batches each; loader, engine and computation take their seconds around each."""
    for step in range(start + 1, start + steps + 1):
        for end in (False, True):
            clock.now += loader + engine
            if trainer.train_dataloader is not None and hasattr(trainer.train_dataloader, "seconds"):
                trainer.train_dataloader.seconds += loader
            batch = micro_batch(end)
            callback.on_train_batch_start(trainer, None, batch, 0)
            clock.now += compute
            trainer.global_step = step if end else step - 1
            callback.on_train_batch_end(trainer, None, None, batch, 0)


def trainer_with(loader, logged, every=2):
    logger = SimpleNamespace(log_metrics=lambda values, step: logged.append((step, dict(values))))
    return SimpleNamespace(train_dataloader=loader, log_every_n_steps=every, logger=logger, world_size=3, global_step=0)


def test_samples_tokens_and_the_share_of_waiting_are_those_of_the_steps_since_the_last_log(clock):
    logged, callback = [], Throughput()
    trainer = trainer_with(SimpleNamespace(seconds=50.0), logged)
    callback.on_train_epoch_start(trainer, None)
    train(callback, clock, trainer, 2)
    # The loader's first batch is start-up. Then 4 micro-batches of 2 seconds, 3 waits of 2 of which the loader took 1.
    assert [step for step, _ in logged] == [1]
    expected = {"samples_per_second": 3 * 12 / 14, "tokens_per_second": 3 * 80 / 14, "loader_wait": 3 / 14}
    assert logged[0][1] == pytest.approx({f"speed/{name}": value for name, value in expected.items()})
    train(callback, clock, trainer, 2, start=2)
    assert callback.latest["speed/loader_wait"] == pytest.approx(4 / 16)


def test_validation_does_not_count(clock):
    logged, callback = [], Throughput()
    trainer = trainer_with(SimpleNamespace(seconds=0.0), logged, every=1)
    callback.on_train_epoch_start(trainer, None)
    train(callback, clock, trainer, 1)
    callback.on_validation_start(trainer, None)
    clock.now += 1000.0
    train(callback, clock, trainer, 1, start=1)
    assert logged[0] == (0, logged[1][1])


def test_a_loader_without_a_clock_is_not_measured(clock):
    logged, callback = [], Throughput()
    trainer = trainer_with([], logged, every=1)
    callback.on_train_epoch_start(trainer, None)
    train(callback, clock, trainer, 1)
    assert set(callback.latest) == {"speed/samples_per_second", "speed/tokens_per_second"}
