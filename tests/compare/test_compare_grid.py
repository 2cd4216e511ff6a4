"""The grid's file: what it may say, and what becomes of it."""

from pathlib import Path

import pytest
import yaml
from jsonargparse import ArgumentParser

from smmd_lightning.cli import main as command_line
from smmd_lightning.compare import load_grid
from smmd_lightning.compare.planning import Plan, known, share
from smmd_lightning.compare.settings_files import merged, read_settings
from smmd_lightning.losses import NumericLoss

ROOT = Path(__file__).parent.parent.parent
SHIPPED = sorted((ROOT / "configs" / "compare").glob("*.yaml"))


def plan_of(file):
    return Plan(load_grid(file))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wieghts": [1]}, "unknown wieghts; settings are tasks, losses, seeds"),
        ({"tasks": {"sums": {"config": "task.yaml", "overides": {}}}}, "task sums: unknown overides"),
        ({"tasks": {"sums": {}}}, "task sums: missing config"),
        ({"tasks": {"sums": {"config": "none.yaml"}}}, r"none\.yaml does not exist"),
        ({"losses": {"ce": {}, "good": {"config": "none.yaml"}}}, r"none\.yaml does not exist"),
        ({"losses": {"a/b": {}}}, "a loss is named 'a/b'"),
        ({"losses": {"ce": {}, "good": {"config": "good.yaml", "label": "ce"}}}, "the same label; labels are ce, ce"),
        ({"baseline": "xent"}, "baseline is 'xent', which is none of ce, good"),
        ({"tune_seeds": []}, "choosing among 2 weights needs tune_seeds"),
        ({"weights": [0.0, 1.0]}, "numbers above 0"),
        ({"weights": ["much"]}, "weights"),
        ({"seeds": [1, 1]}, "names a seed twice"),
        ({"sweeps": [{"loss": "ce", "setting": "width", "values": [1]}]}, "a sweep needs a numeric loss"),
        ({"checkpoint": "first"}, "first"),
    ],
)
def test_mistakes_are_named(write_grid, change, message):
    with pytest.raises(ValueError, match=message):
        load_grid(write_grid(**change))


def test_nested_files_are_read_relative_to_the_file_that_names_them(tmp_path):
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "parts" / "deep" / "limits.yaml").write_text("{low: 1}")
    (tmp_path / "parts" / "data.yaml").write_text("{limits: deep/limits.yaml, list: [deep/limits.yaml, x]}")
    (tmp_path / "task.yaml").write_text("{data: parts/data.yaml, run_dir: runs/x, seed_everything: 5, model: {a: 1}}")
    (tmp_path / "grid.yaml").write_text("{tasks: {t: {config: task.yaml}}, losses: {ce: }, seeds: [3]}")
    (run,) = plan_of(tmp_path / "grid.yaml").final({("t", "ce"): None})
    assert run.settings == {
        "seed_everything": 3,
        "data": {"limits": {"low": 1}, "list": [{"low": 1}, "x"]},
        "model": {"a": 1, "numeric_loss": None},
    }


def test_another_class_brings_its_own_settings():
    below = {"data": {"class_path": "A", "init_args": {"x": 1, "y": 2}}}
    assert merged(below, {"data": {"init_args": {"y": 3}}})["data"]["init_args"] == {"x": 1, "y": 3}
    assert merged(below, {"data": {"class_path": "A", "init_args": {"y": 3}}})["data"]["init_args"] == {"x": 1, "y": 3}
    assert merged(below, {"data": {"class_path": "B", "init_args": {"z": 3}}})["data"]["init_args"] == {"z": 3}


def test_the_losses_of_an_experiment_do_not_shine_through(write_grid, tmp_path):
    file = write_grid()
    (tmp_path / "task.yaml").write_text("{model: {numeric_loss: {class_path: bad, init_args: {w: 1}}, loss_weight: 9}}")
    ce, good, *_ = known(plan_of(file).final({("sums", "ce"): None, ("sums", "good"): 0.3}))
    assert ce.settings["model"] == {"numeric_loss": None}
    assert good.settings["model"] == {
        "numeric_loss": {"class_path": "good", "init_args": {"width": 2.0}},
        "loss_weight": 0.3,
    }


def test_a_loss_may_bring_settings_of_the_model_along(write_grid):
    schedule = {"weight_schedule": {"warmup_steps": 3}}
    file = write_grid(losses={"ce": {}, "good": {"config": "good.yaml", "model": schedule}})
    ce, good, *_ = known(plan_of(file).final({("sums", "ce"): None, ("sums", "good"): 0.3}))
    assert good.settings["model"].items() > {**schedule, "size": 1, "loss_weight": 0.3}.items()
    assert "weight_schedule" not in ce.settings["model"]


def test_only_final_runs_see_the_test_split(write_grid):
    plan = plan_of(write_grid(sweeps=[{"loss": "good", "setting": "width", "values": [1.0, 2.0]}]))
    weights = {cell: plan.grid.loss_weights(cell[1])[0] for cell in plan.cells}
    assert {run.stage for run in plan.tuning()} == {"validate"}
    assert {run.stage for run in known(plan.sweeps(weights))} == {"validate"}
    assert {run.stage for run in known(plan.final(weights))} == {"test"}
    assert {run.seed for run in plan.tuning()}.isdisjoint(run.seed for run in known(plan.final(weights)))


def test_all_losses_are_tuned_over_the_same_weights_and_cross_entropy_is_not(write_grid):
    runs = plan_of(write_grid()).tuning()
    by_loss = {}
    for run in runs:
        by_loss.setdefault(run.loss, set()).add(run.weight)
    assert by_loss == {"good": {0.1, 0.3}, "bad": {0.1, 0.3}, "same": {0.1, 0.3}}
    assert plan_of(write_grid(weights=[0.3], tune_seeds=[])).tuning() == []


def test_equal_settings_are_one_run_and_changed_ones_another(write_grid):
    cell = {("sums", "good"): 0.3}
    first = next(known(plan_of(write_grid()).final(cell)))
    assert next(known(plan_of(write_grid()).final(cell))).folder == first.folder
    other = next(known(plan_of(write_grid(overrides={"model": {"size": 5}})).final(cell)))
    assert other.folder != first.folder
    assert next(known(plan_of(write_grid(checkpoint="best")).final(cell))).hash != first.hash
    # A sweep that sets what the loss has anyway is the tuning run itself.
    plan = plan_of(write_grid(sweeps=[{"loss": "good", "setting": "width", "values": [2.0, 4.0], "tasks": ["sums"]}]))
    same, wider = known(plan.sweeps(cell))
    assert same.folder in {run.folder for run in plan.tuning()}
    assert wider.settings["model"]["numeric_loss"]["init_args"] == {"width": 4.0}


def test_seeds_can_be_fewer_for_a_task_and_for_a_loss(write_grid):
    tasks = {"sums": {"config": "task.yaml"}, "clocks": {"config": "task.yaml", "seeds": [1, 2]}}
    losses = {"ce": {}, "good": {"config": "good.yaml", "seeds": [2, 3]}}
    grid = load_grid(write_grid(tasks=tasks, losses=losses))
    assert [grid.cell_seeds(*cell) for cell in Plan(grid).cells] == [[1, 2, 3], [2, 3], [1, 2], [2]]


def test_shards_are_a_partition_that_does_not_move_when_weights_become_known(write_grid):
    plan = plan_of(write_grid())
    everything = {cell: plan.grid.loss_weights(cell[1])[-1] for cell in plan.cells}
    parts = [share(plan.final(everything), number, 3) for number in (1, 2, 3)]
    folders = [run.folder for part in parts for run in known(part)]
    assert sorted(folders) == sorted(run.folder for run in known(plan.final(everything)))
    assert len(folders) == len(set(folders)) == 24
    some = {cell: weight for cell, weight in everything.items() if cell[1] == "ce"}
    early = share(plan.final(some), 2, 3)
    assert [run.folder for run in known(early)] == [run.folder for run in known(parts[1]) if run.loss == "ce"]
    assert len(early) == len(parts[1])


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_grids_are_understood_by_the_command_line(file, tmp_path):
    plan = plan_of(file)
    weights = {cell: plan.grid.loss_weights(cell[1])[0] for cell in plan.cells}
    runs = {(run.task, run.loss): run for run in known(plan.final(weights))}
    for task, loss in zip(plan.grid.tasks, plan.grid.losses, strict=False):  # each task, and with it another loss
        run = runs[task, loss]
        settings = tmp_path / "settings.yaml"
        settings.write_text(yaml.safe_dump(run.settings))
        cli = command_line(["fit", "--config", str(settings), "--run_dir", str(tmp_path / "run")], run=False)
        # A seed draws the weights, but for presets whose own weights are scaled so that they learn early.
        assert cli.model.backbone.from_scratch == (task in ("arithmetic", "products", "word_problems", "measurements"))
        assert cli.datamodule.seed == run.seed
        loss = run.settings["model"]["numeric_loss"]
        built = cli.model.objective.numeric_loss
        assert type(built).__name__ == (loss["class_path"].rpartition(".")[2] if loss else "NoneType")
        assert loss is None or cli.model.objective.loss_weight == run.weight


@pytest.mark.parametrize("file", sorted((ROOT / "configs" / "loss").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_losses_are_built_as_their_files_say(file):
    settings = read_settings(file)
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(NumericLoss, "loss")
    loss = parser.instantiate_classes(parser.parse_object({"loss": settings})).loss
    assert f"smmd_lightning.losses.{type(loss).__name__}" == settings["class_path"]
    for name, value in settings.get("init_args", {}).items():
        if name != "loss":
            assert getattr(loss, name) == (tuple(value) if isinstance(value, list) else value)


def test_the_full_grid_has_five_seeds_where_they_matter_and_one_list_of_weights():
    grid = load_grid(ROOT / "configs" / "compare" / "full.yaml")
    for task in ("products", "clock"):
        for loss in ("ce", "ntl_was", "smmd"):
            assert len(grid.cell_seeds(task, loss)) >= 5
    lists = {tuple(grid.loss_weights(loss)) for loss in grid.losses} - {(None,)}
    assert len(lists) == 1
    assert not set(grid.seeds) & set(grid.tune_seeds)


def test_gaussian_smoothing_is_not_dist2_in_disguise():
    folder = ROOT / "configs" / "loss"
    smoothing = yaml.safe_load((folder / "gaussian_smoothing.yaml").read_text())["init_args"]
    dist2 = yaml.safe_load((folder / "dist2.yaml").read_text())["init_args"]
    assert smoothing["smoothing"] < 1 or dist2["whole_head"] or dist2["temperature"] != 2 * smoothing["bandwidth"] ** 2
