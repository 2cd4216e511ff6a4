"""What a metrics class declares about its task, and who reads it."""

import json
from typing import ClassVar

import pytest
import torch
import yaml
from PIL import Image

from smmd_lightning.callbacks.best_and_last import BestAndLast
from smmd_lightning.callbacks.sample_gallery import tile
from smmd_lightning.compare.collecting import Result, choose_weights
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.planning import Plan
from smmd_lightning.compare.traces import read_trace
from smmd_lightning.metrics import (
    TASKS,
    AnswerMetrics,
    MetricFacts,
    MetricsByTask,
    NumberMetrics,
    ToleranceCurve,
    larger_is_better,
    metric_facts,
    metrics_for,
)
from smmd_lightning.metrics.facts import LOSSES
from smmd_lightning.metrics.registry import load
from smmd_lightning.metrics.score import Judgement, Score
from smmd_lightning.report.page import write_report
from smmd_lightning.types import NumericExample

PURPLE = (128, 0, 128)


def declare_gauge():
    """Declares a task "gauge" as a user would, in one class; the class takes itself out of `TASKS` with the test."""

    class GaugeMetrics(AnswerMetrics):
        task: ClassVar[str] = "gauge"
        title: ClassVar[str] = "Pressure gauges"
        headline: ClassVar[str] = "mean_needle_angle"
        tiles: ClassVar[tuple[str, ...]] = ("upright",)
        unit: ClassVar[str] = "degrees"
        facts = {
            "mean_needle_angle": MetricFacts("min", "degrees", "Mean angle"),
            "upright": MetricFacts("max", "share", "Right way up"),
        }
        by_kind: ClassVar[tuple[str, ...]] = ("upright",)
        tolerant_rule: ClassVar[str] = "the right way up"
        curve = ToleranceCurve("Needles by tolerance", "degrees that are tolerated", (0, 1, 5, 30), (0, 5))
        plots: ClassVar[str] = f"{__name__}:gauge_plots"
        overlay: ClassVar[str] = f"{__name__}:gauge_picture"
        overlay_svg: ClassVar[str] = f"{__name__}:gauge_svg"

        width = 2

        def judge(self, prediction, example):
            off = abs(float(prediction) - float(example.answer))
            return Judgement(Score(prediction, example.answer, off, off == 0), (off, float(off < 90)))

        def summarise(self, table_NC):
            return {
                "mean_needle_angle": table_NC[:, 0].mean(),
                "upright": table_NC[:, 1].mean(),
                "exact_match": (table_NC[:, 0] == 0).float().mean(),
            }

        def distances(self, table_NC):
            return table_NC[:, 0]

        def close_enough(self, table_NC):
            return table_NC[:, 1] > 0

    return GaugeMetrics


def gauge_plots(judged):
    return [f"<figure>needles of {len(judged.rows)} gauges</figure>"]


def gauge_picture(row, picture, size):
    return Image.new("RGB", (size, size), PURPLE)


def gauge_svg(row, address):
    return f"<i>needle at {row['parsed']} over {address[:10]}</i>"


@pytest.fixture
def gauge():
    before = dict(TASKS)
    yield declare_gauge()
    TASKS.clear()
    TASKS.update(before)


def gauge_example(number, answer, kind="round"):
    return NumericExample(f"g{number}", "How much?", answer, meta={"task": "gauge", "kind": kind})


def write_grid(folder):
    grid = {
        "tasks": {"gauges": {"config": "task.yaml", "metrics": ["mean_needle_angle"]}},
        "losses": {"ce": {}, "good": {"config": "good.yaml"}},
        "weights": [0.1, 1.0],
        "tune_seeds": [101],
        "seeds": [1, 2],
    }
    (folder / "task.yaml").write_text(yaml.safe_dump({"model": {}}))
    (folder / "good.yaml").write_text(yaml.safe_dump({"class_path": "good"}))
    (folder / "grid.yaml").write_text(yaml.safe_dump(grid))
    return folder / "grid.yaml"


@pytest.mark.usefixtures("gauge")
def test_a_task_declared_in_one_class_gets_metrics_best_mode_gallery_page_and_comparison(tmp_path):
    metrics = MetricsByTask()
    examples = [gauge_example(0, "10"), gauge_example(1, "20", "square")]
    metrics.update(["12", "120"], examples)
    values = metrics.compute()
    assert values["mean_needle_angle"] == 51
    assert values["by_kind/square/upright"] == 0

    assert BestAndLast("val/gauge/mean_needle_angle").mode == "min"
    assert BestAndLast("val/upright").mode == "max"

    rows = [metrics.row(text, example) for text, example in zip(["12", "120"], examples, strict=True)]
    assert rows[1]["error_unit"] == "degrees"
    assert tile(rows[0], None, 40).getpixel((20, 20)) == PURPLE

    rows += [{**row, "id": f"{row['id']} again"} for row in rows]
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("model: {}\n")
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = write_report(folder).read_text("utf-8")
    for shown in ("Pressure gauges", "Mean angle", "51 degrees", "Right way up", "50.0 %", "needles of 4 gauges",
                  "Needles by tolerance", "needle at 12 over", "pale: the right way up",
                  "100 degrees off"):  # fmt: skip
        assert shown in page, shown

    plan = Plan(load_grid(write_grid(tmp_path)))
    tuned = [Result(run, {"mean_needle_angle": run.weight}, 1.0) for run in plan.tuning()]
    assert choose_weights(plan, tuned)["gauges", "good"].weight == 0.1
    (tmp_path / tuned[0].run.folder).parent.mkdir(parents=True, exist_ok=True)
    folder.rename(tmp_path / tuned[0].run.folder)
    trace = read_trace(tuned[0], tmp_path, "mean_needle_angle")
    assert (trace.errors, trace.tolerances, trace.accuracies()) == ((2.0, 100.0) * 2, (0, 5), [0.0, 0.5])


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_metric_of_every_task_is_declared(task):
    metrics = metrics_for(task)
    for name in metrics.summarise(torch.zeros(3, metrics.width)):
        assert metrics.facts_of(name) is not None, name
        assert metrics.facts_of(name).title
    for name in (metrics.headline, *metrics.tiles, *metrics.by_kind):
        assert metrics.facts_of(name) is not None, name
    assert metrics.task == task
    assert metrics.title
    assert metrics.close_enough(torch.zeros(3, metrics.width)).tolist() in ([False] * 3, [True] * 3)
    for path in (metrics.plots, metrics.overlay, metrics.overlay_svg):
        assert not path or callable(load(path))


@pytest.mark.parametrize(
    ("name", "larger"),
    [
        ("exact_match", True),
        ("val/exact_match", True),
        ("relaxed_accuracy_robust", True),
        ("within_5_percent", True),
        ("within_2.5_percent", True),
        ("val/clock/within_5_minutes", True),
        ("median_error_minutes", False),
        ("clock/by_kind/roman/median_error_minutes", False),
        ("by_kind/größe/2/exact_match", True),
        ("test/math/parse_failures", False),
        *((f"val/{name}", False) for name in LOSSES),
    ],
)
def test_the_direction_of_a_metric_is_declared_under_any_of_its_names(name, larger):
    assert larger_is_better(name) is larger
    assert BestAndLast(name).mode == ("max" if larger else "min")


@pytest.mark.parametrize("name", ["brier", "val/pinball", "ece", "val/clock/accuracy", "within_x_percent"])
def test_the_direction_of_an_undeclared_metric_is_asked_for(name):
    with pytest.raises(ValueError, match=rf"whether more or less of the metric '{name}' is better"):
        BestAndLast(name)
    assert BestAndLast(name, mode="min").mode == "min"


def test_two_tasks_that_disagree_about_a_metric_must_be_told_apart(gauge):
    gauge.facts = {**gauge.facts, "hour_accuracy": MetricFacts("min")}
    with pytest.raises(ValueError, match=r"disagree .* 'val/hour_accuracy' is better; name the task"):
        metric_facts("val/hour_accuracy")
    assert larger_is_better("val/clock/hour_accuracy")


def test_a_task_has_one_class(gauge):
    assert TASKS["gauge"] is gauge
    assert declare_gauge() is TASKS["gauge"]  # the same class defined again, as in a notebook
    with pytest.raises(ValueError, match=r"OtherGauge and .*GaugeMetrics both say task = 'gauge'"):
        type("OtherGauge", (NumberMetrics,), {"task": "gauge"})


def test_a_subclass_without_a_task_of_its_own_leaves_its_parents_in_place():
    parent = TASKS["clock"]
    own = type("StrictClock", (parent,), {})
    assert TASKS["clock"] is parent
    assert own.task == "clock"


@pytest.mark.parametrize("path", ["no_colon", ":f", "no.such.module:f", "smmd_lightning.metrics:no_such_name"])
def test_a_dotted_path_that_names_nothing_is_an_error(path):
    with pytest.raises(ValueError, match=r"package.module:function|names nothing"):
        load(path)


@pytest.mark.parametrize(
    ("facts", "value", "shown"),
    [
        (MetricFacts(), 0.5, "50.0 %"),
        (MetricFacts("min", "relative"), 0.05, "5 %"),
        (MetricFacts("min", "relative"), 1e20, "1e+20"),
        (MetricFacts("min", "% of the scale"), 2.3456, "2.346 % of the scale"),
        (MetricFacts("min", ""), float("inf"), "infinite"),
        (MetricFacts("min", ""), float("nan"), "undefined"),
    ],
)
def test_values_are_shown_with_their_unit(facts, value, shown):
    assert facts.shown(value) == shown
