"""Metrics over several processes and tasks equal those of one process that sees everything."""

import json
import math
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from launching import finish, ranks, start

from smmd_lightning.metrics import TASKS, ClockMetrics, MetricsByTask, NumberMetrics, metric_facts, metrics_for
from smmd_lightning.types import NumericExample


def example(task, answer, **meta):
    return NumericExample(f"{task}-{answer}", f"{task}?", answer, meta={"task": task, **meta})


ANSWERS = ["3:05", "12", "1:00", "2%", "none", "7", "4:00"]
EXAMPLES = [
    example("clock", "03:06"),
    example("math", "12", kind="sum"),
    example("clock", "12:59"),
    example("chart", "2", kind="lookup"),
    example("math", "30", kind="difference"),
    example("math", "7", kind="sum"),
    example("clock", "09:00"),
]


def same(values, expected):
    assert list(values) == list(expected)
    for name in expected:
        assert torch.equal(values[name].nan_to_num(-1), expected[name].nan_to_num(-1)), name


def everything(shard=slice(None)):
    metrics = MetricsByTask()
    if ANSWERS[shard]:
        metrics.update(ANSWERS[shard], EXAMPLES[shard])
    return metrics


@pytest.mark.parametrize("cut", [0, 1, 4, 7])
@pytest.mark.parametrize("task", sorted(TASKS))
def test_merging_the_states_of_two_processes_equals_one_process(task, cut):
    mine = [(answer, row) for answer, row in zip(ANSWERS, EXAMPLES, strict=True) if row.meta["task"] == task]
    whole, ranks = metrics_for(task), [metrics_for(task), metrics_for(task)]
    whole.update([answer for answer, _ in mine], [row for _, row in mine])
    for rank, shard in zip(ranks, (mine[:cut], mine[cut:]), strict=True):
        for answer, row in shard:
            rank.update([answer], [row])
    gathered = metrics_for(task)
    for name in ("rows", "kinds", "cuts"):  # what torchmetrics does after gathering: joined in the order of processes
        joined = [state for rank in ranks for state in getattr(rank, name)]
        setattr(gathered, name, torch.cat(joined) if joined else [])
    gathered._update_count = 1
    same(gathered.compute(), whole.compute())


@pytest.mark.distributed
def test_two_processes_with_unequal_and_empty_shards_agree_with_one(tmp_path):
    expected = {name: value.item() for name, value in everything().compute().items()}
    log = tmp_path / "log"
    codes = finish([start([__file__, str(tmp_path)], log, **variables) for variables in ranks(2)], 120)
    assert codes == [0, 0], log.read_text()[-5000:]
    for rank in (0, 1):
        for outcome in json.loads((tmp_path / f"{rank}.json").read_text()):
            assert list(outcome) == list(expected)
            assert outcome == pytest.approx(expected, nan_ok=True)


def test_several_tasks_carry_their_name_and_pool_the_exact_matches():
    values = {name: value.item() for name, value in everything().compute().items()}
    assert values["clock/samples"] == 3
    assert values["clock/mean_error_minutes"] == pytest.approx((1 + 1 + 300) / 3)
    assert values["math/exact_match"] == pytest.approx(2 / 3)
    assert values["math/by_kind/sum/exact_match"] == 1
    assert values["chart/relaxed_accuracy_official"] == 0
    assert values["chart/relaxed_accuracy_robust"] == 1
    assert values["exact_match"] == pytest.approx((0 + 2 + 1) / 7)
    assert values["samples"] == 7


def test_a_single_task_has_short_names():
    metrics = MetricsByTask()
    metrics.update(["3:05"], [example("clock", "03:05")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torchmetrics would warn of the tasks without answers
        values = metrics.compute()
    assert values["exact_match"] == 1
    assert not any("clock" in name for name in values)


def test_reset_forgets_everything():
    metrics = everything()
    metrics.compute()
    metrics.reset()
    assert metrics.compute() == {}
    metrics.update(["12"], [example("math", "12")])
    assert metrics.compute()["samples"] == 1


def test_rows_for_the_prediction_file_are_plain():
    metrics = MetricsByTask()
    assert metrics.row("1:00", EXAMPLES[2]) == {
        "id": "clock-12:59",
        "task": "clock",
        "prompt": "clock?",
        "truth": "12:59",
        "raw": "1:00",
        "parsed": "01:00",
        "error": 1.0,
        "error_unit": "minutes",
        "correct": False,
        "meta": {"task": "clock"},
    }
    assert metrics.row("?", EXAMPLES[1])["error"] is None
    assert metrics.compute() == {}  # a row is not an update


def test_a_task_that_nobody_declared_is_judged_as_numbers():
    metrics = MetricsByTask()
    metrics.update(["1", "2"], [example("poem", "1"), NumericExample("a", "", "3")])
    values = metrics.compute()
    assert (values["exact_match"], values["samples"], values["mean_absolute_error"]) == (0.5, 2, 0.5)
    assert [metrics.row("1", row)["task"] for row in (example("poem", "1"), NumericExample("a", "", "3"))] == [
        "poem",
        "number",
    ]
    assert type(metrics_for("poem")) is NumberMetrics


def test_an_example_of_another_task_than_the_given_metrics_is_named():
    with pytest.raises(ValueError, match=r"Example 'poem-1': meta\['task'\] must be one of clock, got 'poem'"):
        MetricsByTask({"clock": ClockMetrics()}).update(["1"], [example("poem", "1")])


def test_own_metrics_can_be_given_for_a_task():
    metrics = MetricsByTask({"clock": ClockMetrics(dial_hours=24)})
    metrics.update(["3:05"], [example("clock", "15:05")])
    assert metrics.compute()["mean_error_minutes"] == 720


@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_headline_is_one_of_the_metrics(task):
    metrics = metrics_for(task)
    facts = {"value": "1", "tick": "1", "scale": [0, 10], "unit": "bar"}
    facts |= {"intervals": [[0, 1]], "units": [[]], "years": ["NO"], "kind": "Factoid", "truth": {"valid": False}}
    metrics.update(["1:00"], [example(task, "1:00", **facts)])
    assert metrics.headline in metrics.compute()
    assert metric_facts(metrics.headline).direction == "max"


def test_states_follow_the_module_and_stay_out_of_checkpoints():
    metrics = everything(slice(0, 0)).to(torch.bfloat16)
    metrics.update(ANSWERS, EXAMPLES)
    assert metrics.by_task["math"].rows[0].dtype == torch.float32
    assert metrics.state_dict() == {}
    assert math.isclose(metrics.compute()["clock/mean_error_minutes"].item(), 302 / 3, rel_tol=1e-6)


def test_a_metric_can_be_used_as_any_torchmetrics_metric():
    metric = NumberMetrics()
    values = metric(["12", "5"], [example("math", "12"), example("math", "6")])
    assert values["exact_match"] == 0.5
    copy = metric.clone()
    copy.reset()
    assert metric.compute()["samples"] == 2


def in_one_of_two_processes(folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, outcomes = dist.get_rank(), []
    for cut in (3, 0):  # unequal shards; then a process that sees nothing
        metrics = everything(slice(0, cut) if rank == 0 else slice(cut, None))
        outcomes.append({name: value.item() for name, value in metrics.compute().items()})
    (folder / f"{rank}.json").write_text(json.dumps(outcomes))
    dist.destroy_process_group()


if __name__ == "__main__":
    in_one_of_two_processes(Path(sys.argv[1]))
