"""Published benchmarks: their files, their prompts, and the number that `smmd-eval` gives."""

import json

import pytest

from datamodules.published import BENCHMARKS, PublishedDataModule
from datamodules.published.module import PublishedQuestions
from datamodules.sources.images import BadSample
from smmd_lightning.commands.evaluate import main
from smmd_lightning.metrics import metrics_for
from smmd_lightning.types import SampleKey

RIGHT = {
    "measurebench": ["Answer: 4.3 bar", "Answer: 15:04"],
    "chartqapro": ["12.", "2009"],
    "its_about_time": ["3:06"],
    "ticktockvqa": ["15:05"],
    "clockbench": ['{"valid": true, "hours": 3, "minutes": 5, "seconds": false}', '{"valid": false}'],
    "chartqa": ["12.5", "12"],
}


@pytest.fixture(params=sorted(BENCHMARKS))
def benchmark(request, tmp_path, write_benchmark):
    """Name and folder of each benchmark in turn."""
    write_benchmark(request.param, tmp_path)
    return request.param, tmp_path


def test_questions_are_read_with_what_their_rule_needs(benchmark):
    name, folder = benchmark
    questions = PublishedQuestions(name, folder)
    assert len(questions) == len(RIGHT[name])
    for index, answer in enumerate(RIGHT[name]):
        example = questions.example(SampleKey(0, index))
        metrics = metrics_for(example.meta["task"])
        metrics.update([answer], [example])
        assert metrics.compute()[metrics.headline] == 1, example
        metrics.reset()
        metrics.update(["nothing at all"], [example])
        assert metrics.compute()[metrics.headline] == 0
        assert len(example.images) == 1


def test_prompts_are_those_of_the_benchmark(write_benchmark, tmp_path):
    asked = {}
    for name in ("measurebench", "chartqapro", "clockbench"):
        (tmp_path / name).mkdir()
        write_benchmark(name, tmp_path / name)
        questions = PublishedQuestions(name, tmp_path / name)
        asked[name] = [questions.example(SampleKey(0, index)).prompt for index in range(2)]
    assert asked["measurebench"][0].startswith("What is the reading of the instrument?\nProvide your final answer")
    assert asked["chartqapro"][0].startswith("You are given a factoid question")
    assert asked["chartqapro"][0].endswith("additional text!\nA text.\nQuestion: How many?")
    assert asked["chartqapro"][1].endswith("Question: Which year?\nAnswer: 2010\nQuestion: And before?")
    assert asked["clockbench"][0] == "What time is it?"
    module = PublishedDataModule("tiny:llava", "clockbench", str(tmp_path / "clockbench"))
    assert module.system_prompt.startswith("Be precise.")
    assert module.max_bad_share == 0


def test_a_clock_is_cut_out_of_its_photograph_with_some_context(write_benchmark, tmp_path):
    write_benchmark("its_about_time", tmp_path)
    (image,) = PublishedQuestions("its_about_time", tmp_path).example(SampleKey(0, 0)).images
    assert image.size == (42, 42)  # a box of 30 x 20 with a fifth of its longer side on each side, square


@pytest.mark.parametrize(
    ("name", "break_it", "message"),
    [
        (
            "measurebench",
            lambda folder: (folder / "data" / "real_world-00000-of-00001.jsonl").unlink(),
            "no file real_world",
        ),
        ("ticktockvqa", lambda folder: (folder / "annotations.json").write_text("{"), "annotations.json: not JSON"),
        ("ticktockvqa", lambda folder: (folder / "annotations.json").write_text("{}"), "expected a list of questions"),
        ("ticktockvqa", lambda folder: (folder / "annotations.json").write_text('[{"hour": 3}]'), "no picture under"),
        ("ticktockvqa", lambda folder: (folder / "annotations.json").write_text("[]"), "no question of ticktockvqa"),
        (
            "clockbench",
            lambda folder: (folder / "input" / "answers_sample.json").write_text("{}"),
            "no answer to .* 'a'",
        ),
    ],
)
def test_files_that_are_not_as_distributed_are_named(write_benchmark, tmp_path, name, break_it, message):
    write_benchmark(name, tmp_path)
    break_it(tmp_path)
    with pytest.raises(ValueError, match=message):
        PublishedQuestions(name, tmp_path)


def test_pictures_outside_the_folder_and_missing_ones_are_refused(tmp_path):
    rows = [{"image_path": name, "hour": 3, "minute": 5} for name in ("../secret.png", "gone.png")]
    (tmp_path / "annotations.json").write_text(json.dumps(rows))
    questions = PublishedQuestions("ticktockvqa", tmp_path)
    with pytest.raises(ValueError, match="leads out of the data folder"):
        questions.example(SampleKey(0, 0))
    with pytest.raises(BadSample, match="no such file"):
        questions.example(SampleKey(0, 1))


def test_a_benchmark_has_nothing_to_train_on(write_benchmark, tmp_path):
    write_benchmark("clockbench", tmp_path)
    with pytest.raises(ValueError, match="questions to test on, and no train split"):
        PublishedDataModule("tiny:llava", "clockbench", str(tmp_path)).source("train")
    with pytest.raises(ValueError, match="benchmark must be one of measurebench"):
        PublishedQuestions("mmlu", tmp_path)
    with pytest.raises(ValueError, match="There is no folder or file"):
        PublishedQuestions("clockbench", tmp_path / "nowhere")


def test_the_command_gives_one_number_and_leaves_the_answers(write_benchmark, tmp_path, capsys):
    (tmp_path / "data").mkdir()
    write_benchmark("its_about_time", tmp_path / "data")
    arguments = ["its_about_time", "--model", "tiny:llava", "--data", str(tmp_path / "data"), "--accelerator", "cpu"]
    arguments += ["--out", str(tmp_path / "out"), "--max-new-tokens", "2"]
    assert main(arguments) == 0
    assert "its_about_time: accuracy 0.0 % of 1 questions" in capsys.readouterr().out
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()]
    assert (row["id"], row["task"], row["truth"]) == ("a.png", "its_about_time", "3:05")
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["test/accuracy"] == 0
    assert (tmp_path / "out" / "report.html").exists()
    assert main(arguments) == 1
    assert "holds predictions already" in capsys.readouterr().err
    assert main([*arguments[:4], str(tmp_path / "nowhere"), "--out", str(tmp_path / "other")]) == 1
    assert "There is no folder or file" in capsys.readouterr().err
