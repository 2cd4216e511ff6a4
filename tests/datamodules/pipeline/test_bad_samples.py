"""The share of samples that cannot be used is one of the split, whatever processes, epochs and order find them."""

import itertools
import random

import pytest
import torch.distributed as dist

from datamodules.pipeline import bad_samples
from datamodules.pipeline.bad_samples import BadSamples
from smmd_lightning.types import Batch


def batch(*indices):
    return Batch({}, None, [], [], skipped=[f"row {index}" for index in indices], bad=list(indices))


@pytest.fixture
def processes(monkeypatch):
    """Makes what each of some processes knows, with a store between them."""

    def make(count, size, share):
        store = dist.HashStore()
        monkeypatch.setattr(bad_samples, "shared_store", lambda: store)
        made = []
        for _ in range(count):
            monkeypatch.setattr(bad_samples, "_numbers", itertools.count(5))
            made.append(BadSamples(size, share, set()))
        return made

    return make


@pytest.mark.parametrize("seed", range(10))
def test_processes_end_together_at_the_share_at_which_one_would(processes, seed):
    rng = random.Random(seed)
    for count in (1, 2, 7):
        found = rng.sample(range(400), 24)
        whole = processes(count, 400, 0.05)
        for number, index in enumerate(found):
            teller = rng.choice(whole)
            if number < 20:
                teller.note(batch(index))
                rng.choice(whole).note(batch(rng.choice(found[: number + 1])))  # found again, by whomever
            else:
                with pytest.raises(RuntimeError, match=rf"{number + 1} of 400 samples could not be used.*0.05"):
                    teller.note(batch(index))
        assert all(one.indices() == sorted(found) for one in whole)


def test_a_checkpoint_of_the_first_process_knows_what_the_others_found(processes):
    first, second = processes(2, 100, 0.5)
    second.note(batch(7, 3))
    assert first.indices() == [3, 7]
    resumed, other = processes(2, 100, 0.02)
    for one in (resumed, other):
        one.restore(4, [3, 7])
    with pytest.raises(RuntimeError, match="3 of 100"):
        other.note(batch(50))
    assert resumed.indices() == [3, 7, 50]


def test_samples_that_are_others_in_each_epoch_do_not_add_up():
    """4 of 100 in each epoch, as of a mixture or of drawn samples that are now and then too long."""
    found = BadSamples(100, 0.05, set())
    for epoch in range(20):
        found.begin(epoch)
        found.note(batch(*((7 * epoch + step) % 100 for step in range(4))))
    with pytest.raises(RuntimeError, match="6 of 100"):
        found.note(batch(98, 99))


def test_each_reason_is_said_once(caplog):
    named = set()
    for _ in range(2):
        BadSamples(100, 0.5, named).note(batch(1, 2, 1))
    assert [record.getMessage() for record in caplog.records] == ["Sample skipped: row 1", "Sample skipped: row 2"]
