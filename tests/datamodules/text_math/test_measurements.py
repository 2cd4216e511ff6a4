"""Noisy measurements: the law of the answers, limited training data, and one test set for all seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamodules.sources.origins import DrawnSplit
from datamodules.text_math import DrawnMeasurements
from datamodules.text_math.measurements import oracle_crps
from smmd_lightning.types import NumericExample, SampleKey


def rows(split: DrawnSplit, count: int, epoch: int = 0) -> list[NumericExample]:
    return [split.example(SampleKey(epoch, index)) for index in range(count)]


def test_answers_follow_the_law_around_the_stated_value() -> None:
    found = rows(DrawnMeasurements(noise=5.0).open("train", seed=3), 2000)
    errors = np.array([int(row.answer) - int(row.meta["value"]) for row in found])
    assert all(row.meta["value"] in row.prompt for row in found), "one reading and no offset state the value"
    assert abs(errors.mean()) < 4 * 5 / math.sqrt(2000)
    assert abs(errors.std() - 5) < 4 * 5 / math.sqrt(2 * 2000)


def test_several_readings_and_an_offset_hide_the_value() -> None:
    drawn = DrawnMeasurements(readings=(3, 3), offset=40, noise=1.0, spread=10)
    for row in rows(drawn.open("train"), 50):
        stated = [int(word) for word in row.prompt.removeprefix("Readings: ").split(".")[0].split()]
        assert len(stated) == 3
        assert max(stated) - min(stated) <= 20
        assert int(row.meta["value"]) == round(sum(stated) / 3) + 40


@pytest.mark.parametrize(("shape", "closed"), [("gaussian", 1 / math.sqrt(math.pi)), ("laplace", 0.75)])
def test_the_oracle_agrees_with_the_closed_form_of_the_continuous_law(shape: str, closed: float) -> None:
    assert oracle_crps(shape, 20.0) == pytest.approx(20 * closed, rel=1e-3)  # type: ignore[arg-type]


def test_training_rows_come_again_and_belong_to_the_seed() -> None:
    drawn = DrawnMeasurements(train_rows=20, eval_seed=5)
    train = drawn.open("train", seed=1)
    assert len(train) == 20
    assert rows(train, 20, epoch=0) == rows(train, 20, epoch=3)
    assert rows(train, 20) != rows(drawn.open("train", seed=2), 20)
    fresh = DrawnMeasurements(eval_seed=5).open("train", seed=1)
    assert rows(fresh, 20, epoch=0) != rows(fresh, 20, epoch=3)


def test_one_test_set_for_all_seeds() -> None:
    drawn = DrawnMeasurements(eval_seed=5, test_size=20)
    assert rows(drawn.open("test", seed=1), 20) == rows(drawn.open("test", seed=2), 20)
    assert rows(drawn.open("test", seed=1), 20) != rows(DrawnMeasurements().open("test", seed=1), 20)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"value_range": (10, 99)}, "value_range begins at 10"),
        ({"noise": 0.0}, "noise must be above 0"),
        ({"readings": (0, 2)}, "readings must be"),
        ({"train_rows": 0}, "train_rows must be at least 1"),
        ({"eval_seed": -1}, "eval_seed must not be negative"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DrawnMeasurements(**settings)
