import threading
import time
from types import SimpleNamespace

import pytest
import torch

from datamodules.pipeline import loader as loading
from datamodules.pipeline.batch_builder import BatchBuilder
from datamodules.pipeline.collate import TooLong
from datamodules.pipeline.loader import NumericLoader
from datamodules.pipeline.sampler import MicroBatchSampler
from smmd_lightning.types import IGNORE_INDEX, BadSample, Batch, NumericExample


class Numbers:
    """Sample i of epoch e answers with i + 1 tokens; the bad ones cannot be read."""

    def __init__(self, size, bad=()):
        self.size, self.bad = size, set(bad)

    def __len__(self):
        return self.size

    def example(self, key):
        if key.index in self.bad:
            raise BadSample(f"row {key.index} is broken")
        return NumericExample(id=f"{key.epoch}-{key.index}", prompt="", answer=str(key.index))


class CountingCollator:
    """Labels a row with `answer + 1` times its answer; rows above `max_length` are too long."""

    def __init__(self, max_length=100):
        self.max_length = max_length

    def __call__(self, examples, counted, *, generation=False):
        long = {
            row: f"sample {example.id} is long"
            for row, example in enumerate(examples)
            if int(example.answer) > self.max_length
        }
        if long:
            raise TooLong(long)
        labels = torch.full((len(examples), 450), IGNORE_INDEX)
        for row, example in enumerate(examples):
            if counted[row]:
                labels[row, 1 : 2 + int(example.answer)] = int(example.answer)
        return Batch(inputs={"input_ids": labels}, labels=labels, examples=list(examples), counted=list(counted))


def make(size=10, batch_size=2, *, window=2, bad=(), max_length=100, train=True, workers=0, share=0.5, end=None):
    builder = BatchBuilder(Numbers(size, bad), size, CountingCollator(max_length), replace_bad=train)
    sampler = MicroBatchSampler(size, batch_size, seed=5, shuffle=train)
    window = window if train else 0
    return NumericLoader(builder, sampler, window=window, epoch_end=end, num_workers=workers, max_bad_share=share)


def ids(batches):
    return [[example.id for example in batch.examples] for batch in batches]


def test_each_micro_batch_knows_the_targets_of_its_whole_window():
    batches = list(make(size=10, batch_size=2, window=2))
    assert [batch.window_end for batch in batches] == [False, True, False, True, True]
    for window in (batches[:2], batches[2:4], batches[4:]):
        expected = sorted(
            int(example.answer)
            for batch in window
            for example in batch.examples
            for _ in range(int(example.answer) + 1)
        )
        for batch in window:
            targets = batch.window_targets.tolist()
            assert sorted(target for target in targets if target != -100) == expected
            assert targets.count(-100) == sum(len(batch.examples) for batch in window)  # one behind each answer
            assert targets[-1] == -100


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_that_ends_early_cuts_its_last_window_and_the_next_one_begins_anew(workers):
    loader = make(size=10, batch_size=2, window=2, end=3, workers=workers)
    assert len(loader) == 5  # Lightning takes its share of this
    first, state, second = list(loader), loader.state_dict(), list(loader)
    assert [batch.window_end for batch in first] == [batch.window_end for batch in second] == [False, True, True]
    whole = make(size=10, batch_size=2, window=2)
    assert [ids(first), ids(second)] == [ids(whole)[:3], ids(whole)[:3]]
    assert len(first[-1].window_targets) == sum(int(example.answer) + 2 for example in first[-1].examples)
    going_on = make(size=10, batch_size=2, window=2, end=3)
    going_on.load_state_dict(state)
    assert ids(going_on) == ids(second)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [2, 4, 5, 6, 9])
def test_a_loader_goes_on_exactly_where_its_saved_state_stands(workers, stop):
    whole = make(workers=workers)
    expected = ids(batch for _ in range(3) for batch in whole)
    first = make(workers=workers)
    seen = []
    state = None
    for _ in range(3):
        for batch in first:
            seen.append([example.id for example in batch.examples])
            if len(seen) == stop:
                state = first.state_dict()
        if state:
            break
    # A stop inside a window goes back to the window's start: its gradient was lost with the process.
    done = {2: 2, 4: 4, 5: 5, 6: 5, 9: 9}[stop]
    second = make(workers=workers)
    second.load_state_dict(state)
    rest = []
    while len(rest) < len(expected) - done:
        rest += ids(second)
    assert rest == expected[done:]


def test_a_state_of_other_settings_is_refused():
    with pytest.raises(ValueError, match=r"5 micro-batches per epoch and process, now there are 3"):
        make(batch_size=4).load_state_dict(make(batch_size=2).state_dict())


def dealt(position=2, **changed):
    """A loader of 20 samples that got a state of 4 x 1 samples a micro-batch, 2 of them a step."""
    size, given = 20, {"batch_size": 4, "rank": 0, "world_size": 1, "seed": 5, "window": 2} | changed
    window = given.pop("window")
    builder = BatchBuilder(Numbers(size), size, CountingCollator(), replace_bad=True)
    loader = NumericLoader(builder, MicroBatchSampler(size, shuffle=True, **given), window=window)
    state = {"epoch": 1, "position": position, "batches": 5, "window": 2, "seed": 5, "batch_size": 4, "world_size": 1}
    loader.load_state_dict(state)
    return loader


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"window": 1},
            r"with trainer\.accumulate_grad_batches=2, now it is trainer\.accumulate_grad_batches=1: go on",
        ),
        ({"seed": 6}, r"with data\.seed \(seed_everything\)=5, now it is data\.seed \(seed_everything\)=6"),
        (
            {"batch_size": 2, "world_size": 2},
            r"with data\.batch_size=4, number of processes=1, now it is data\.batch_size=2, number of processes=2",
        ),
    ],
)
def test_a_state_of_the_same_length_but_other_settings_is_refused_with_their_names(changed, message):
    with pytest.raises(ValueError, match=message):
        dealt(**changed)


def test_a_state_says_what_it_depends_on_and_one_that_does_not_is_taken():
    loader = dealt()
    assert loader.state_dict()["position"] == 2
    assert dealt(position=5, batch_size=2, world_size=2).state_dict()["position"] == 5  # the next epoch is dealt anew
    old = {name: value for name, value in loader.state_dict().items() if name in ("epoch", "position", "batches")}
    other = make(size=20, batch_size=4, window=4)
    other.load_state_dict(old)
    assert other.state_dict() == loader.state_dict() | {"window": 4, "data": other.state_dict()["data"]}


def test_other_data_of_the_same_length_are_refused():
    state = make(size=20).state_dict()
    other = make(size=20)
    other._builder.source.example = lambda key: NumericExample(f"{key.index}", "2*3?", "6")
    with pytest.raises(ValueError, match="written with other data"):
        other.load_state_dict(state)
    make(size=20).load_state_dict(state)


def test_evaluation_is_the_same_each_time():
    loader = make(size=5, train=False)
    assert ids(loader) == ids(loader) == [["0-0", "0-1"], ["0-2", "0-3"], ["0-4", "0-0"]]
    assert [batch.counted for batch in loader][-1] == [True, False]


def test_a_bad_training_sample_is_replaced_by_its_neighbour(caplog):
    batches = list(make(size=10, batch_size=5, bad=[3], share=0.5))
    answers = [int(example.answer) for batch in batches for example in batch.examples]
    assert sorted(answers) == [0, 1, 2, 4, 4, 5, 6, 7, 8, 9]
    assert all(all(batch.counted) for batch in batches)
    assert [reason for batch in batches for reason in batch.skipped] == ["row 3 is broken"]
    assert caplog.text.count("row 3 is broken") == 1


def test_a_bad_evaluation_sample_does_not_count_and_nothing_counts_twice():
    batches = list(make(size=10, batch_size=5, bad=[3], train=False, share=0.5))
    counted = [
        int(example.answer)
        for batch in batches
        for example, counts in zip(batch.examples, batch.counted, strict=True)
        if counts
    ]
    assert sorted(counted) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_sample_over_max_length_is_skipped_and_named():
    batches = list(make(size=10, batch_size=5, max_length=8, share=0.5))
    assert [reason for batch in batches for reason in batch.skipped] == ["sample 0-9 is long"]
    assert all(int(example.answer) <= 8 for batch in batches for example in batch.examples)


def test_too_many_bad_samples_stop_the_run_with_a_list():
    with pytest.raises(RuntimeError, match=r"max_bad_share=0.1 allows:\n(  row \d+ is broken\n){10}Mend the data"):
        list(make(size=40, batch_size=5, bad=range(10), train=False, share=0.1))


def test_nothing_but_bad_samples_stops_a_training():
    with pytest.raises(RuntimeError, match=r"None of the 3 training samples can be used.*row \d is broken"):
        list(make(size=3, batch_size=1, bad=range(3)))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_evaluation_without_a_usable_sample_yields_batches_without_rows_and_ends(workers):
    for trouble in ({"bad": range(300)}, {"max_length": -1}):
        batches = list(make(size=300, batch_size=30, train=False, share=1.0, workers=workers, **trouble))
        assert [len(batch) for batch in batches] == [0] * 10
        assert sorted(index for batch in batches for index in batch.bad) == list(range(300))


def test_a_hundred_bad_samples_in_a_row_are_no_end_where_the_share_allows_them():
    for train in (True, False):
        batches = list(make(size=300, batch_size=10, bad=range(250), train=train, share=1.0, max_length=999))
        rows = [row for batch in batches for row in zip(batch.examples, batch.counted, strict=True)]
        assert {int(example.answer) for example, _ in rows} <= set(range(250, 300))
        assert sum(counted for _, counted in rows) == (300 if train else 50)


def test_samples_that_fit_are_found_among_many_that_do_not():
    batches = list(make(size=400, batch_size=10, max_length=7, share=1.0))  # 8 of 400
    assert {int(example.answer) for batch in batches for example in batch.examples} == set(range(8))


@pytest.mark.parametrize("seed", range(5))
def test_the_share_of_bad_samples_is_that_of_the_whole_split(seed):
    """4 % bad never end a run with a limit of 5 %, in whatever order they come; 6 % always do."""
    order = torch.randperm(400, generator=torch.Generator().manual_seed(seed)).tolist()
    for epochs in range(2):
        loader = make(size=400, batch_size=4, bad=order[:16], share=0.05, max_length=999)
        for _ in range(epochs + 1):
            list(loader)
    with pytest.raises(RuntimeError, match="21 of 400 samples could not be used"):
        list(make(size=400, batch_size=1, bad=order[:24], share=0.05, max_length=999))


def test_bad_samples_are_remembered_over_resuming():
    first = make(size=40, batch_size=2, bad=[3, 5, 30], share=0.06)
    with pytest.raises(RuntimeError, match="3 of 40"):
        list(first)
    state = first.state_dict()
    second = make(size=40, batch_size=2, bad=[3, 5, 30], share=0.06)
    second.load_state_dict(state | {"bad": [3, 30]})
    with pytest.raises(RuntimeError, match="3 of 40"):
        list(second)


def test_batches_leave_workers_as_they_are_made_without_them():
    made = {workers: list(make(workers=workers)) for workers in (0, 1)}
    assert len(made[0]) == len(made[1])
    for own, sent in zip(made[0], made[1], strict=True):
        assert torch.equal(own.labels, sent.labels)
        assert own.inputs.keys() == sent.inputs.keys()
        assert all(torch.equal(own.inputs[name], sent.inputs[name]) for name in own.inputs)
        assert own.examples == sent.examples


def test_the_next_batch_of_a_worker_is_fetched_in_a_thread_while_the_last_is_in_use(monkeypatch):
    fetched = []
    unpack = loading.Parcel.unpack

    def noted(parcel):
        fetched.append(threading.current_thread())
        return unpack(parcel)

    monkeypatch.setattr(loading.Parcel, "unpack", noted)
    batches = iter(make(size=8, batch_size=2, window=1, workers=1))
    next(batches)
    deadline = time.monotonic() + 30
    while len(fetched) < 2 and time.monotonic() < deadline:  # nobody asks for the second one
        time.sleep(0.01)
    assert len(fetched) == 2
    assert threading.main_thread() not in fetched
    batches.close()
    assert not any(thread.is_alive() for thread in fetched)


def test_an_error_in_a_worker_reaches_the_consumer():
    with pytest.raises(RuntimeError, match="row 0 is broken"):
        list(make(size=1, batch_size=1, bad=[0], workers=1))


def test_a_loader_knows_how_long_it_was_waited_for(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(loading, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    loader = make(size=8, batch_size=2, window=2)
    build = BatchBuilder.__getitem__

    def slow(self, keys):
        clock.now += 3.0
        return build(self, keys)

    monkeypatch.setattr(BatchBuilder, "__getitem__", slow)
    for _ in loader:
        clock.now += 100.0  # the consumer's own time
    assert loader.seconds == 4 * 3.0


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError(104, "reset"), FileNotFoundError(2, "no socket")])
def test_a_connection_that_broke_is_a_worker_that_died(error):
    def receive():
        yield "a batch"
        raise error

    batches = loading._from_workers(receive())
    assert next(batches) == "a batch"
    with pytest.raises(RuntimeError, match="DataLoader worker exited unexpectedly") as raised:
        next(batches)
    assert raised.value.__cause__ is error


def test_a_missing_file_in_a_living_worker_stays_what_it_is():
    def receive():
        raise FileNotFoundError("Caught FileNotFoundError in DataLoader worker process 0.")
        yield

    with pytest.raises(FileNotFoundError, match="worker process 0"):
        next(loading._from_workers(receive()))
