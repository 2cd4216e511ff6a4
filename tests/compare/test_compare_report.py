"""From results to weights, tables and pages."""

import csv
import io
import math
import re

import pytest

from smmd_lightning.commands.compare import main
from smmd_lightning.compare.blocks import Bullets, Heading, Link, Picture, Text, TextTable, html, markdown
from smmd_lightning.compare.collecting import Result, choose_weights, table_text
from smmd_lightning.compare.comparison import Comparison
from smmd_lightning.compare.grid import load_grid
from smmd_lightning.compare.planning import Plan
from smmd_lightning.compare.traces import answer_error, envelope
from smmd_lightning.metrics import larger_is_better


def choose(file, score):
    """Chooses weights where a tuning run's exact match is `score(run)`."""
    plan = Plan(load_grid(file))
    found = [Result(run, {plan.grid.tasks[run.task].metrics[0]: score(run)}, 1.0) for run in plan.tuning()]
    return plan, found, choose_weights(plan, found)


def test_the_weight_with_the_best_mean_over_the_tuning_seeds_is_chosen(write_grid):
    scores = {(0.1, 101): 0.9, (0.1, 102): 0.1, (0.3, 101): 0.6, (0.3, 102): 0.6, (1.0, 101): 0.2, (1.0, 102): 0.7}
    file = write_grid(weights=[1.0, 0.1, 0.3], tune_seeds=[101, 102])
    _, _, chosen = choose(file, lambda run: scores[run.weight, run.seed])
    assert chosen["sums", "good"].weight == 0.3
    assert chosen["sums", "good"].scores == pytest.approx({0.1: 0.5, 0.3: 0.6, 1.0: 0.45})
    assert not chosen["sums", "good"].at_the_edge
    assert chosen["sums", "ce"].weight is None


def test_ties_go_to_the_smallest_weight_and_undefined_values_lose(write_grid):
    _, _, chosen = choose(write_grid(weights=[0.1, 0.3, 1.0]), lambda run: math.nan if run.weight == 0.1 else 0.5)
    assert {choice.weight for (_, loss), choice in chosen.items() if loss != "ce"} == {0.3}


def test_errors_are_better_small(write_grid):
    tasks = {"sums": {"config": "task.yaml", "metrics": ["mean_absolute_error"]}}
    _, _, chosen = choose(write_grid(tasks=tasks), lambda run: run.weight)
    assert chosen["sums", "good"].weight == 0.1
    assert chosen["sums", "good"].at_the_edge
    assert larger_is_better("relaxed_accuracy_robust")
    assert larger_is_better("within_5_percent")
    assert not larger_is_better("median_error_minutes")


def test_weights_are_not_chosen_before_tuning_is_complete(write_grid):
    plan, found, _ = choose(write_grid(), lambda run: 0.5)
    partly = choose_weights(plan, [result for result in found if result.run.title != found[0].run.title])
    assert (found[0].run.task, found[0].run.loss) not in partly
    assert len(partly) == len(plan.cells) - 1


def test_a_metric_that_does_not_exist_is_named(write_grid, tmp_path, capsys):
    tasks = {"sums": {"config": "task.yaml", "metrics": ["exact_match", "accuracy"]}}
    file = write_grid(tasks=tasks, losses={"ce": {}}, seeds=[1])
    assert main(["--config", str(file), "--out", str(tmp_path / "out")]) == 1
    assert (
        "there is no metric 'accuracy'; there are exact_match, mean_absolute_error, median_absolute_error"
        in capsys.readouterr().err
    )


def test_rows_of_the_table_are_tidy(write_grid):
    _, found, _ = choose(write_grid(), lambda run: 0.1 + 0.2)
    rows = list(csv.DictReader(io.StringIO(table_text(found[:2]))))
    assert len(rows) == 2
    assert rows[0] == {
        "phase": "tune", "task": "sums", "loss": "good", "variant": "", "weight": "0.1", "seed": "101",
        "split": "validation", "metric": "exact_match", "value": "0.30000000000000004",
        "run": str(found[0].run.folder), "hash": found[0].run.hash,
    }  # fmt: skip


@pytest.fixture(scope="module")
def finished(grid_writer, tmp_path_factory):
    """A comparison of all four losses, three seeds, with a sweep."""
    sweeps = [{"loss": "good", "setting": "width", "values": [1.0, 2.0], "tasks": ["sums"]}]
    folder = tmp_path_factory.mktemp("finished")
    file, out = grid_writer(folder, sweeps=sweeps, name="Good & bad <losses>"), folder / "out"
    assert main(["--config", str(file), "--out", str(out), "--jobs", "4"]) == 0
    return file, out


def test_the_report_says_what_differs_and_what_is_noise(finished):
    _, out = finished
    text = (out / "report.md").read_text()
    assert "Good \\| loss is better than CE: +0.097" in text
    assert "bad is worse than CE: -0.08" in text
    assert re.search(r"same against CE: .* over 3 seeds; within noise \(least detectable: 0\.\d+\)", text)
    assert re.search(r"\| Good \\\| loss \| 0\.3 \| 3 \|.*\| 3 : 0 \| \d.*\| better \|", text)
    assert "chosen on the validation split" in text
    assert "the test split was not looked at" in text
    assert "| sums | Good \\| loss | 0." in text  # the tuning table
    assert "Sensitivity to Good \\| loss: width" in text
    assert "38 of 38 runs are finished." in text


def test_every_number_leads_to_a_run(finished):
    _, out = finished
    text = (out / "report.md").read_text()
    rows = list(csv.DictReader((out / "results.csv").open()))
    cell = ("final", "sums", "good", "exact_match")
    found = [row for row in rows if (row["phase"], row["task"], row["loss"], row["metric"]) == cell]
    values = [float(row["value"]) for row in found]
    assert len(values) == 3
    assert f"{sum(values) / 3:.4f} [" in text
    links = re.findall(r"\((runs/[^)]+)\)", text)
    assert len(links) == 38
    for link in links:
        assert (out / link).is_file()
    for row in rows:
        assert (out / row["run"] / "settings.yaml").is_file()
        assert f"({row['run']}/settings.yaml)" in text


def test_the_page_needs_nothing_else_and_is_the_same_each_time(finished):
    file, out = finished
    page = (out / "report.html").read_text()
    assert "Good &amp; bad &lt;losses&gt;" in page
    assert "<losses>" not in page
    assert not re.search(r'(?:src|href)="(?!data:|runs/|#part-)', page)
    contents = re.findall(r'<a href="#(part-\d)">([^<]+)</a>', page)  # as on the page about a run
    assert contents[0] == ("part-0", "Method")
    assert re.findall(r'<section id="(part-\d)"><h2>([^<]+)</h2>', page) == contents
    assert "Runs" in dict(contents).values()
    assert page.count("<h1>") == 1
    assert "default-src 'none'" in page
    pictures = sorted(file.name for file in (out / "plots").iterdir())
    assert pictures == ["clocks-final.png", "clocks-weight.png", "sums-final.png", "sums-weight.png",
                        "sweep1-good-width.png"]  # fmt: skip
    assert page.count("data:image/png;base64,") == len(pictures)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.suffix in (".png", ".html", ".md", ".csv")}
    Comparison(file, out).report()
    assert {file: file.read_bytes() for file in before} == before


def test_values_that_are_not_finite_are_shown_and_not_compared(write_grid, tmp_path):
    tasks = {"sums": {"config": "task.yaml", "metrics": ["median_absolute_error"]}}
    file = write_grid(tasks=tasks, losses={"ce": {}, "good": {"config": "good.yaml"}}, seeds=[1, 2])
    assert main(["--config", str(file), "--out", str(tmp_path / "out"), "--jobs", "4"]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| good | 0.1 | 2 | inf |" in text
    assert "median_absolute_error is not finite in some run" in text
    assert (tmp_path / "out" / "plots" / "sums-final.png").stat().st_size > 1000


def test_blocks_are_escaped():
    blocks = [
        Heading("a <b>"),
        Text("x | y"),
        Bullets(["<i>"]),
        TextTable(("h",), [[Link("<t>", 'p"q')]]),
        Picture("p", "c"),
    ]
    assert markdown(blocks).splitlines()[:3] == ["## a &lt;b>", "", "x \\| y"]
    page = html(blocks, {"p": b"png"})
    assert "<h2>a &lt;b&gt;</h2>" in page
    assert 'href="p&quot;q">&lt;t&gt;</a>' in page
    assert "<i>" not in page


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"truth": "50", "parsed": "40", "error": 10.0, "error_unit": "absolute"}, 0.2),
        ({"truth": "-4", "parsed": "4", "error": 8.0, "error_unit": "absolute"}, 2.0),
        ({"truth": "0", "parsed": "0", "error": 0.0, "error_unit": "absolute", "correct": True}, 0.0),
        ({"truth": "0", "parsed": "1", "error": 1.0, "error_unit": "absolute"}, math.inf),
        ({"truth": "31%", "parsed": "30%", "error": 0.03, "error_unit": "relative"}, 0.03),
        ({"truth": "7", "parsed": None, "error": None, "error_unit": "absolute"}, math.inf),
        ({"truth": "Spain", "parsed": "Spain", "error": None, "error_unit": "relative", "correct": True}, None),
        ({"truth": "03:05", "parsed": "03:10", "error": 5.0, "error_unit": "minutes"}, 5.0),
    ],
)
def test_errors_of_answers(row, error):
    assert answer_error(row) == error


def test_envelope_of_curves_of_different_length():
    assert envelope([((1, 1.0), (2, 3.0)), ((1, 2.0),)]) == [(1, 1.5, 1.0, 2.0), (2, 3.0, 3.0, 3.0)]
