import pytest

from datamodules.pipeline.sampler import MicroBatchSampler, epoch_order


def all_keys(size: int, batch_size: int, world_size: int, *, epoch: int = 0, shuffle: bool = True):
    """[micro-batch][rank] -> keys."""
    ranks = []
    for rank in range(world_size):
        sampler = MicroBatchSampler(size, batch_size, rank=rank, world_size=world_size, seed=3, shuffle=shuffle)
        sampler.epoch = epoch
        ranks.append(list(sampler))
    assert len({len(keys) for keys in ranks}) == 1, "ranks make different numbers of steps"
    return list(zip(*ranks, strict=True))


@pytest.mark.parametrize("size", [1, 5, 16, 23])
@pytest.mark.parametrize(("batch_size", "world_size"), [(1, 1), (4, 1), (2, 2), (3, 4)])
def test_every_sample_counts_exactly_once_an_epoch(size, batch_size, world_size):
    keys = [key for step in all_keys(size, batch_size, world_size) for rank in step for key in rank]
    assert sorted(key.index for key in keys if key.counted) == list(range(size))
    assert all(0 <= key.index < size for key in keys)


def test_an_optimizer_step_holds_the_same_samples_however_it_is_cut_up():
    def steps(batch_size, world_size, accumulate):
        micro = all_keys(24, batch_size, world_size)
        return [
            {key.index for step in micro[start : start + accumulate] for rank in step for key in rank}
            for start in range(0, len(micro), accumulate)
        ]

    whole = steps(8, 1, 1)
    assert steps(4, 2, 1) == whole
    assert steps(2, 2, 2) == whole
    assert steps(2, 1, 4) == whole


def test_each_epoch_has_its_own_order_that_depends_on_seed_and_epoch_alone():
    first, second = (epoch_order(50, seed=7, epoch=epoch, shuffle=True).tolist() for epoch in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))
    assert epoch_order(50, seed=7, epoch=1, shuffle=True).tolist() == second
    assert epoch_order(50, seed=8, epoch=1, shuffle=True).tolist() != second
    assert epoch_order(5, seed=7, epoch=1, shuffle=False).tolist() == [0, 1, 2, 3, 4]


def test_starting_later_gives_the_rest_of_the_epoch():
    sampler = MicroBatchSampler(20, 3, seed=1, shuffle=True)
    whole = list(sampler)
    sampler.start = 4
    assert list(sampler) == whole[4:]
    assert len(sampler) == len(whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0, "batch_size": 1}, "at least one sample"),
        ({"size": 5, "batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"size": 5, "batch_size": 1, "rank": 2, "world_size": 2}, "rank must lie in 0..1"),
    ],
)
def test_impossible_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        MicroBatchSampler(**arguments)
