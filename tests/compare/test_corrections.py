"""Corrections for many comparisons: against the closed test written out."""

import itertools
import random

import pytest

from smmd_lightning.compare.corrections import holm, holm_over_tasks


def closed_test(values):
    """Tests every set of comparisons by its least p times the number of its tasks; the largest of these counts."""
    names = [(task, name) for task, of in values.items() for name in of]
    adjusted = {}
    for chosen in names:
        worst = 0.0
        for size in range(1, len(names) + 1):
            for among in itertools.combinations(names, size):
                if chosen in among:
                    tasks = {task for task, _ in among}
                    worst = max(worst, len(tasks) * min(values[task][name] for task, name in among))
        adjusted[chosen] = min(1.0, worst)
    return adjusted


@pytest.mark.parametrize("seed", range(20))
def test_holm_over_tasks_is_the_closed_test(seed):
    rng = random.Random(seed)
    values = {
        task: {name: rng.random() ** 3 for name in "xyz"[: rng.randint(1, 3)]} for task in "abc"[: rng.randint(1, 3)]
    }
    found = holm_over_tasks(values)
    expected = closed_test(values)
    assert {(task, name) for task, of in found.items() for name in of} == set(expected)
    for (task, name), p in expected.items():
        assert found[task][name] == pytest.approx(p, abs=1e-12)


def test_one_comparison_per_task_is_holms_own_procedure():
    values = [0.01, 0.04, 0.03, 0.2]
    found = holm_over_tasks({str(place): {"a": p} for place, p in enumerate(values)})
    assert [found[str(place)]["a"] for place in range(4)] == pytest.approx(holm(values))
    assert holm(values) == pytest.approx([0.04, 0.09, 0.09, 0.2])


def test_a_strong_effect_beside_it_does_not_let_a_comparison_pass():
    # Each task has one sure difference; the other comparisons are held to half the level all the same.
    found = holm_over_tasks({"a": {"sure": 1e-9, "x": 0.04}, "b": {"sure": 1e-9, "x": 0.04}})
    assert found["a"]["x"] == pytest.approx(0.08)
    assert found["a"]["sure"] == pytest.approx(2e-9)


def test_nothing_to_compare():
    assert holm([]) == []
    assert holm_over_tasks({"a": {}, "b": {"x": 0.5}}) == {"a": {}, "b": {"x": 0.5}}
