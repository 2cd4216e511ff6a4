"""Training, data, batching, evaluation, start-up: each variant once at toy size, numerics equal, nothing timed."""

import argparse

import pytest

from benchmarks import batching, data, evaluation, startup, training

TOY = argparse.Namespace(toy=True, runs=1, gsm8k=None, model=None, method="lora", without=[])


def measured(variants, case):
    """What the harness would hand to `check` and `render`, from this very process."""
    found = {"case": case}
    for name, variant in variants.items():
        one = variant(case)
        wall = one["seconds"]
        found[name] = {"peak": 1 << 30, **one, "median": wall, "least": wall, "most": wall}
    return found


@pytest.mark.parametrize("method", ["lora", "full", "clocks"])
def test_all_trainers_begin_with_the_same_cross_entropy(method):
    pytest.importorskip("trl", reason="TRL is not installed")
    (case,) = training.cases(argparse.Namespace(**{**vars(TOY), "method": method}))
    chosen = case.pop("variants")
    found = measured({name: training.VARIANTS[name] for name in chosen}, case)
    for name in chosen:
        assert training.difference(found[name], found["ours"]) < 1e-5
    training.check(found)
    assert training.render([found]).count(f"| {method}, ") == len(chosen) >= 3


def test_all_ways_to_batch_give_one_gradient():
    (case,) = batching.cases(TOY)
    found = measured(batching.VARIANTS, case)
    batching.check(found)
    positions = {name: found[name]["positions"] for name in batching.VARIANTS}
    assert positions["packed"] == positions["grouped_and_packed"] < positions["grouped"] < positions["padded"]
    assert "grouped and packed" in batching.render([found])


def test_batched_answers_are_those_of_single_prompts():
    (case,) = evaluation.cases(TOY)
    variants = {
        "batched": evaluation.batched,
        "one_by_one": evaluation.one_by_one,
        "without_stop": evaluation.without_stop,
    }
    found = measured(variants, case)
    assert evaluation.same(found) == case["prompts"]
    assert found["without_stop"]["tokens"] == case["prompts"] * case["tokens"] >= found["batched"]["tokens"]
    evaluation.check(found)
    assert "3 of 3" in evaluation.render([found])


def test_data_are_counted_for_each_number_of_workers():
    case, _ = data.cases(TOY)
    found = measured({"ours": data.feed}, case)
    assert set(found["ours"]["rates"]) == {"0", "1", "2"}
    assert "clocks, plain" in data.render([found])


def test_drawing_alone_is_counted_too():
    _, case = data.cases(TOY)
    found = measured({"ours": data.feed}, case)
    assert len(found["ours"]["rates"]["0"]) == 1
    assert data.render([found]).splitlines()[-1].count("|") == 5


def test_start_up_runs_a_whole_process():
    (case,) = startup.cases(TOY)
    found = measured({"ours": startup.process}, case)
    assert "import smmd_lightning" in startup.render([found])
