"""Samples of like length share an optimizer step; everything else about the order stays as promised."""

import json
from itertools import chain

import numpy as np
import pytest

from datamodules import ClockDataModule, DrawnClocks, MathFiles, TextMathDataModule
from datamodules.pipeline.sampler import MicroBatchSampler

LENGTHS = np.random.default_rng(0).integers(10, 500, 203)


def steps(batch_size=4, world_size=1, window=1, epoch=0, size=203, grouped=True):
    """[optimizer step] -> keys, over all ranks."""
    samplers = [
        MicroBatchSampler(
            size, batch_size, rank=rank, world_size=world_size, seed=3, shuffle=True, window=window,
            lengths=(lambda epoch: LENGTHS[:size] + epoch) if grouped else None,
        )
        for rank in range(world_size)
    ]  # fmt: skip
    for sampler in samplers:
        sampler.epoch = epoch
    micro = [[key for keys in parts for key in keys] for parts in zip(*samplers, strict=True)]
    return [list(chain(*micro[start : start + window])) for start in range(0, len(micro), window)]


def padding(groups):
    """Share of positions that would be padding."""
    rows = [[LENGTHS[key.index] for key in group] for group in groups]
    return 1 - sum(sum(row) for row in rows) / sum(max(row) * len(row) for row in rows)


def test_every_sample_counts_once_and_much_less_is_padding():
    for epoch in (0, 1):
        keys = [key for step in steps(epoch=epoch) for key in step]
        assert sorted(key.index for key in keys if key.counted) == list(range(203))
    assert padding(steps()) < 0.2 * padding(steps(grouped=False))


def test_a_step_holds_the_same_samples_however_it_is_cut_up():
    def sets(**layout):
        return [{key.index for key in step if key.counted} for step in steps(**layout)]

    whole = sets(batch_size=8)
    assert sets(batch_size=4, world_size=2) == whole
    assert sets(batch_size=2, world_size=2, window=2) == whole


def test_the_order_is_random_but_a_function_of_seed_and_epoch():
    first = [key.index for step in steps() for key in step]
    assert first == [key.index for step in steps() for key in step]
    assert first != [key.index for step in steps(epoch=1) for key in step]
    longest = [max(LENGTHS[key.index] for key in step) for step in steps()]
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.5, "short ones first is no random order"


def test_text_is_grouped_and_pictures_are_refused(tmp_path):
    rows = [{"question": f"{'one ' * int(length)}?", "answer": "#### 1"} for length in LENGTHS[:64]]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = MathFiles(str(tmp_path / "train.jsonl"), fractions=(1.0, 0.0, 0.0), cache_dir=str(tmp_path / "cache"))

    def lengths(**settings):
        loader = TextMathDataModule("tiny:qwen2", files, batch_size=4, **settings).train_dataloader()
        return [batch.inputs["attention_mask"].float().mean().item() for batch in loader]

    assert np.mean(lengths(group_by_length=True)) > 0.9 > np.mean(lengths())
    clocks = DrawnClocks(train_size=4, style="plain", image_size=64)
    with pytest.raises(ValueError, match=r"group_by_length=true is for text: sample .* has an image"):
        next(iter(ClockDataModule("tiny:llava", clocks, group_by_length=True).train_dataloader()))
