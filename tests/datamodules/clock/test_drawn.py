"""Drawn clocks: which times a split holds, and what a drawing depends on."""

from __future__ import annotations

from typing import Any

import pytest
from opening import open_drawn

from datamodules.clock import DrawnClocks
from datamodules.clock.face_spec import FaceRanges
from datamodules.clock.times import split_times
from smmd_lightning.types import SampleKey


def key(index: int, epoch: int = 0) -> SampleKey:
    return SampleKey(epoch, index)


def test_splits_have_disjoint_times_that_cover_the_dial() -> None:
    times = split_times(seed=3, fractions=(0.7, 0.1, 0.2), minute_step=5)
    assert [len(times[name]) for name in ("train", "val", "test")] == [101, 14, 29]
    assert sorted(time for part in times.values() for time in part) == list(range(0, 720, 5))
    assert times == split_times(seed=3, fractions=(0.7, 0.1, 0.2), minute_step=5)
    assert times != split_times(seed=4, fractions=(0.7, 0.1, 0.2), minute_step=5)


def test_test_times_are_never_trained_unless_asked_for() -> None:
    def asked(split: str, **settings: Any) -> set[str]:
        source = open_drawn(DrawnClocks, 150, split, style="plain", image_size=16, minute_step=15, **settings)
        return {source.example(key(i)).answer for i in range(len(source))}

    shares = (0.5, 0.25, 0.25)
    train, val, test = (asked(split, fractions=shares) for split in ("train", "val", "test"))
    assert not train & val
    assert not train & test
    assert not val & test
    assert len(test) == 12
    assert len(asked("test", fractions=shares, unseen_times=False)) == 48


def test_a_drawing_is_a_function_of_seed_epoch_and_index() -> None:
    def pixels(split: str, index: int, epoch: int, seed: int = 0) -> bytes:
        example = open_drawn(DrawnClocks, 9, split, image_size=32, seed=seed).example(key(index, epoch))
        return example.images[0].tobytes() + example.answer.encode()

    assert pixels("train", 4, 2) == pixels("train", 4, 2)
    others = [
        pixels("train", 5, 2),
        pixels("train", 4, 3),
        pixels("train", 4, 2, seed=1),
        pixels("val", 4, 2),
    ]
    assert len({pixels("train", 4, 2), *others}) == 5
    assert pixels("test", 4, 0) == pixels("test", 4, 7), "outside training nothing changes between epochs"
    val, test = (
        open_drawn(DrawnClocks, 9, split, image_size=32, unseen_times=False).example(key(4))
        for split in ("val", "test")
    )
    assert val.answer == test.answer
    assert val.images[0].tobytes() != test.images[0].tobytes(), "one time of day, two drawings"


def test_ids_answers_and_facts_agree() -> None:
    source = open_drawn(DrawnClocks, 40, "train", image_size=24, answer_format="HH:MM:SS")
    for index in range(40):
        example = source.example(key(index, 3))
        meta = example.meta
        assert example.id == f"train-3-{index}"
        assert example.answer == f"{meta['hour']:02d}:{meta['minute']:02d}:{meta['second']:02d}"
        assert 1 <= meta["hour"] <= 12
        assert (meta["task"], meta["style"]) == ("clock", "varied")
        assert example.prompt == "What time does this clock show? Answer as HH:MM:SS."
        assert example.images[0].size == (24, 24)
    assert open_drawn(DrawnClocks, 40, "val", image_size=24).example(key(7)).id == "val-7"


def test_without_a_second_hand_the_minute_hand_stands_on_a_minute() -> None:
    source = open_drawn(DrawnClocks, 30, "train", image_size=16, ranges=FaceRanges(second_hand=0.0))
    assert {source.example(key(i)).meta["second"] for i in range(30)} == {0}
    source = open_drawn(DrawnClocks, 30, "train", image_size=16, ranges=FaceRanges(second_hand=1.0))
    assert len({source.example(key(i)).meta["second"] for i in range(30)}) > 10


def test_wordings_vary_by_sample_and_repeat() -> None:
    source = open_drawn(DrawnClocks, 30, "train", image_size=16, prompts=["Time?", "What is the time?"])
    asked = [source.example(key(i)).prompt for i in range(30)]
    assert set(asked) == {"Time?", "What is the time?"}
    assert asked == [source.example(key(i)).prompt for i in range(30)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"split": "dev"}, "split must be one of"), ({"style": "fancy"}, "style must be one of"),
     ({"size": -1}, "train_size must not be negative"), ({"seed": -1}, "seed must not be negative"),
     ({"minute_step": 7}, "minute_step must divide 60, got 7"),
     ({"fractions": (0.9, 0.9, 0.1)}, "add up to 1"),
     ({"fractions": (0.9, 0.1, 0.0), "split": "test"}, "no times of day for 'test'"),
     ({"answer_format": "H"}, "answer_format must be")],
)  # fmt: skip
def test_nonsense_settings_say_what_to_change(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_drawn(DrawnClocks, **{"size": 5, "split": "train", "image_size": 16, **settings})
