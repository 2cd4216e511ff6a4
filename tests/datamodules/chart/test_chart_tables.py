"""Chart data: drawn, in ChartQA's own format, PlotQA's, and as the hub has them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from opening import open_drawn, open_file, open_hub
from PIL import Image

from datamodules.chart.data import CHART_KINDS, ChartTable, Series, sample_table
from datamodules.chart.drawn import DrawnCharts
from datamodules.chart.questions import QUESTION_KINDS, ask
from datamodules.chart.tables import ChartColumns, ChartFiles, ChartHub, label_text
from smmd_lightning.types import BadSample, SampleKey


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


def png(colour: str = "white") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGBA", (40, 30), colour).save(buffer, "PNG")
    return buffer.getvalue()


def key(index: int, epoch: int = 0) -> SampleKey:
    return SampleKey(epoch, index)


# Questions

TABLE = ChartTable(
    "Energy use by year", "energy use", "TWh", "Year", "in", ("2001", "2002", "2003"),
    (
        Series("Coal", (Decimal(30), Decimal("12.5"), Decimal(50))),
        Series("Gas", (Decimal(8), Decimal(100), Decimal(4))),
    ),
)  # fmt: skip


def cell(text: str) -> Decimal:
    name, year = re.fullmatch(r"the energy use of (\w+) in (\d+)", text).groups()  # type: ignore[union-attr]
    series = next(series for series in TABLE.series if series.name == name)
    return series.values[TABLE.categories.index(year)]


def column(text: str) -> tuple[Decimal, ...]:
    return next(series.values for series in TABLE.series if series.name == text)


def half_up(value: Decimal, places: str) -> Decimal:
    return value.quantize(Decimal(places), ROUND_HALF_UP)


C, S = r"(the energy use of \w+ in \d+)", r"the energy use of (\w+)"
ORACLES: list[tuple[str, Callable[..., Decimal]]] = [
    (rf"(?:What is|How high is|Give) {C}[?.]", cell),
    (rf"What is the absolute difference between {C} and {C}\?", lambda a, b: abs(cell(a) - cell(b))),
    (rf"How far apart are {C} and {C}\?", lambda a, b: abs(cell(a) - cell(b))),
    (rf"What is the sum of {C} and {C}\?", lambda a, b: cell(a) + cell(b)),
    (rf"What is {S} added up over all years\?", lambda s: sum(column(s), Decimal(0))),
    (rf"What is the ratio of {C} to {C}, rounded to two decimals\?", lambda a, b: half_up(cell(a) / cell(b), "0.01")),
    (rf"What is the (?:highest|largest|maximum) value of {S}\?", lambda s: max(column(s))),
    (rf"What is the (?:lowest|smallest|minimum) value of {S}\?", lambda s: min(column(s))),
    (rf"What is the average of {S} over all years, rounded to one decimal\?",
     lambda s: half_up(sum(column(s), Decimal(0)) / 3, "0.1")),
    (rf"What is the average of {S} over all years, rounded to two decimals\?",
     lambda s: half_up(sum(column(s), Decimal(0)) / 3, "0.01")),
    (rf"For how many years is {S} above ([\d.]+) TWh\?", lambda s, x: Decimal(sum(v > Decimal(x) for v in column(s)))),
    (rf"For how many years is {S} below ([\d.]+) TWh\?", lambda s, x: Decimal(sum(v < Decimal(x) for v in column(s)))),
]  # fmt: skip


def test_every_answer_is_what_the_question_says() -> None:
    seen: dict[str, set[str]] = {kind: set() for kind in QUESTION_KINDS}
    for seed in range(800):
        question = ask(TABLE, np.random.default_rng(seed))
        fits = [(match, oracle) for pattern, oracle in ORACLES if (match := re.fullmatch(pattern, question.text))]
        assert len(fits) == 1, question.text
        match, oracle = fits[0]
        assert Decimal(question.answer) == oracle(*match.groups()), question.text
        assert re.fullmatch(r"\d+(\.\d*[1-9])?", question.answer), "plain digits, no needless zeros"
        seen[question.kind].add(question.text)
    assert all(len(texts) >= 2 for texts in seen.values())


def test_counts_never_hang_on_a_value_at_the_bar() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        table = sample_table(rng, CHART_KINDS[seed % 7])
        text = ask(table, rng, ["count"]).text
        bar = Decimal(re.search(r"(?:above|below) ([\d.]*\d)", text)[1])  # type: ignore[index]
        asked = [series for series in table.series if len(table.series) == 1 or f" of {series.name} " in text]
        assert len(asked) == 1
        assert bar not in asked[0].values


def test_equal_values_can_be_counted_and_unknown_kinds_are_refused() -> None:
    flat = ChartTable("T", "price", "", "Fruit", "for", ("a", "b"), (Series("price", (Decimal(4), Decimal(4))),))
    answers = {ask(flat, np.random.default_rng(seed), ["count"]).answer for seed in range(20)}
    assert answers == {"0", "2"}
    with pytest.raises(ValueError, match="question kinds must be some of"):
        ask(flat, np.random.default_rng(0), ["median"])


# Drawn charts


def test_a_drawn_chart_is_a_function_of_seed_epoch_and_index() -> None:
    def content(split: str, index: int, epoch: int, seed: int = 0) -> bytes:
        example = open_drawn(DrawnCharts, 9, split, image_size=160, seed=seed).example(key(index, epoch))
        return example.images[0].tobytes() + (example.prompt + example.answer).encode()

    assert content("train", 4, 2) == content("train", 4, 2)
    others = [content("train", 5, 2), content("train", 4, 3), content("train", 4, 2, seed=1), content("val", 4, 2)]
    assert len({content("train", 4, 2), *others}) == 5
    assert content("test", 4, 0) == content("test", 4, 7)


def test_kinds_sizes_and_prompts_are_obeyed() -> None:
    source = open_drawn(
        DrawnCharts, 30, "train", image_size=(300, 200), charts=["pie", "line"], questions=["sum", "count"],
        printed_share=1.0,
        prompts=["Q: {question} A:"],
    )  # fmt: skip
    examples = [source.example(key(i, 1)) for i in range(30)]
    assert {example.meta["chart"] for example in examples} == {"pie", "line"}
    assert {example.meta["kind"] for example in examples} == {"sum", "count"}
    assert all(example.meta["printed"] and example.meta["task"] == "chart" for example in examples)
    assert all(example.images[0].size == (300, 200) for example in examples)
    assert all(re.fullmatch(r"Q: .*\? A:", example.prompt) for example in examples)
    assert examples[3].id == "train-1-3"
    every = open_drawn(DrawnCharts, 200, "val", image_size=128)
    assert {every.example(key(i)).meta["chart"] for i in range(80)} == set(CHART_KINDS)


def test_a_wording_of_ones_own_stands_for_a_question_that_the_picture_settles() -> None:
    settings: dict[str, Any] = {"charts": ["pie"], "questions": ["maximum"], "image_size": 128}
    own = open_drawn(DrawnCharts, 3, "val", **settings, prompts=["Largest slice?"])
    asked = open_drawn(DrawnCharts, 3, "val", **settings)
    for index in range(3):
        assert own.example(key(index)).prompt == "Largest slice?"
        assert own.example(key(index)).answer == asked.example(key(index)).answer
    for change in ({"charts": ["pie", "line"]}, {"questions": ["lookup"]}, {"questions": ["maximum", "minimum"]}):
        with pytest.raises(ValueError, match=r"must hold \{question\}"):
            open_drawn(DrawnCharts, 3, "val", **{**settings, **change}, prompts=["Largest slice?"])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"charts": ["radar"]}, "charts must be some of"), ({"questions": []}, "questions must be some of"),
     ({"size": -1}, "train_size must not be negative"), ({"printed_share": 2}, "printed_share must lie between"),
     ({"prompts": ["What?"]}, "must hold {question}"), ({"split": "dev"}, "split must be one of")],
)  # fmt: skip
def test_nonsense_settings_say_what_to_change(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_drawn(DrawnCharts, **{"size": 5, "split": "train", **change})


# Files

HUMAN = [
    {"imgname": "a.png", "query": "How many?", "label": "12"},
    {"imgname": "b.png", "query": "Rise?", "label": "Yes"},
]
AUGMENTED = [{"imgname": "a.png", "query": "Which years?", "label": "[2010, 2014]"}]


def chartqa(folder: Path) -> Path:
    """A folder as ChartQA has it."""
    (folder / "png").mkdir(parents=True)
    for name, colour in (("a", "red"), ("b", "#00000000")):
        (folder / "png" / f"{name}.png").write_bytes(png(colour))
    (folder / "val_human.json").write_text(json.dumps(HUMAN, indent=1))
    (folder / "val_augmented.json").write_text(json.dumps(AUGMENTED, indent=1))
    return folder


def test_chartqa_folders_give_both_parts(tmp_path: Path) -> None:
    source = open_file(ChartFiles, chartqa(tmp_path / "val"), "val")
    examples = [source.example(key(i)) for i in range(len(source))]
    assert [example.answer for example in examples] == ["12", "Yes", "[2010, 2014]"]
    assert [example.meta["kind"] for example in examples] == ["human", "human", "augmented"]
    assert [example.id for example in examples] == ["val_human-1", "val_human-2", "val_augmented-1"]
    assert examples[0].prompt == "How many?\nAnswer with a single word or number."
    assert examples[0].images[0].getpixel((0, 0)) == (255, 0, 0)
    assert examples[1].images[0].getpixel((0, 0)) == (255, 255, 255), "transparent paper is white"
    assert len(open_file(ChartFiles, tmp_path / "val", "val", parts=["augmented"])) == 1
    assert len(open_file(ChartFiles, tmp_path / "val" / "val_human.json", "val")) == 2
    with pytest.raises(ValueError, match=r"no file named \*_human\.json"):
        open_file(ChartFiles, tmp_path, "val")
    with pytest.raises(ValueError, match=r"none\.json: no such file"):
        open_file(ChartFiles, tmp_path / "none.json", "val")


def test_plotqa_rows_through_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "png").mkdir()
    (tmp_path / "png" / "7.png").write_bytes(png("blue"))
    rows = [
        {"image_index": 7, "question_string": "What is the {sum}?", "answer": 3.5, "template": "data"},
        {"image_index": 7, "question_string": "Title?", "answer": "Sales", "template": "structural"},
    ]
    (tmp_path / "qa.json").write_text(json.dumps({"qa_pairs": rows}))
    columns = ChartColumns(
        image="image_index", question="question_string", answer="answer", kind="template", suffix=".png"
    )
    source = open_file(ChartFiles, tmp_path / "qa.json", "train", field="qa_pairs", columns=columns)
    examples = [source.example(key(i)) for i in range(2)]
    assert [example.answer for example in examples] == ["3.5", "Sales"]
    assert [example.meta["kind"] for example in examples] == ["data", "structural"]
    assert examples[0].prompt.startswith("What is the {sum}?\n")
    assert examples[0].images[0].getpixel((0, 0)) == (0, 0, 255)
    with pytest.raises(ValueError, match=r"qa\.json.*no list under the key 'rows'"):
        open_file(ChartFiles, tmp_path / "qa.json", "train", field="rows", columns=columns)


def test_questions_about_one_chart_stay_together(tmp_path: Path) -> None:
    chartqa(tmp_path)
    rows = [{"imgname": f"{i % 50}.png", "query": f"Q{i}?", "label": str(i)} for i in range(150)]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    charts: dict[str, set[str]] = {}
    total = 0
    for split in ("train", "val", "test"):
        source = open_file(ChartFiles, tmp_path / "all.json", split, fractions=(0.6, 0.2, 0.2))
        charts[split] = {source.tables[n][0].row(i)["imgname"] for n, i in source.places}
        total += len(source)
    assert total == 150
    assert not charts["train"] & charts["test"]
    assert not charts["train"] & charts["val"]
    assert all(charts.values())


def test_what_is_wrong_is_said_with_file_row_and_column(tmp_path: Path) -> None:
    folder = chartqa(tmp_path / "set")
    (tmp_path / "secret.png").write_bytes(png())
    (folder / "top.png").write_bytes(png())
    rows = [
        {"imgname": "gone.png", "query": "Q?", "label": "1"},
        {"imgname": "a.png", "query": "", "label": "1"},
        {"imgname": "a.png", "query": "Q?", "label": None},
        {"imgname": "../../secret.png", "query": "Q?", "label": "1"},
        {"imgname": "../top.png", "query": "Q?", "label": "1"},
    ]
    (folder / "bad.json").write_text(json.dumps(rows))
    source = open_file(ChartFiles, folder / "bad.json", "val")
    for index, name, reason in ((0, "imgname", "no such file"), (1, "query", "no question"), (2, "label", "no answer")):
        with pytest.raises(BadSample, match=rf"bad\.json: row {index + 1}, column '{name}'.*{reason}"):
            source.example(key(index))
    for index in (3, 4):
        with pytest.raises(ValueError, match=rf"row {index + 1}, column 'imgname'.*data folder") as info:
            source.example(key(index))
        assert not isinstance(info.value, BadSample)
    (folder / "other.json").write_text(json.dumps([{"picture": "a.png"}]))
    with pytest.raises(ValueError, match=r"other\.json: no column 'imgname', 'query', 'label'"):
        open_file(ChartFiles, folder / "other.json", "val")
    with pytest.raises(ValueError, match="image_folder 'pictures'"):
        open_file(ChartFiles, folder / "bad.json", "val", image_folder="pictures")


@pytest.mark.parametrize(
    ("label", "text"),
    [("74", "74"), (" 5.497 trillion ", "5.497 trillion"), (["3"], "3"), ([2010, 2014], "[2010, 2014]"), (6.2, "6.2"),
     (3.0, "3"), (12, "12"), (-0.5, "-0.5")],
)  # fmt: skip
def test_labels_become_text(label: object, text: str) -> None:
    assert label_text(label, "here") == text


@pytest.mark.parametrize("label", [None, "", "  ", [], float("nan"), {}, [None], ".", "$", "\u200b", "NaN", "-inf"])
def test_no_label_is_a_bad_sample(label: object) -> None:
    with pytest.raises(BadSample, match=r"here: .* is no answer"):
        label_text(label, "here")


# The hub's two layouts


def test_both_layouts_of_chartqa_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"query": ["How many?", "Which?"], "label": [["12"], ["a", "b"]]}
    features = datasets.Features({
        "query": datasets.Value("string"), "label": datasets.Sequence(datasets.Value("string")),
        "image": datasets.Image(), "human_or_machine": datasets.ClassLabel(names=["human", "machine"]),
    })  # fmt: skip
    image = [{"bytes": png("red"), "path": None}] * 2
    m4 = datasets.Dataset.from_dict({**shared, "image": image, "human_or_machine": [0, 1]}, features=features)
    masry = datasets.Dataset.from_dict(
        {"image": [png("red")] * 2, "query": shared["query"], "label": ["12", "[a, b]"], "type": ["human", "augmented"]}
    )
    plain = m4.cast_column("human_or_machine", datasets.Value("int64"))
    for rows in (m4, masry, plain):
        monkeypatch.setattr(datasets, "load_dataset", lambda *_, rows=rows, **__: rows)
        source = open_hub(ChartHub, "someone/ChartQA", "val")
        examples = [source.example(key(i)) for i in range(2)]
        assert [example.answer for example in examples] == ["12", "[a, b]"]
        assert [example.meta["kind"] for example in examples] == ["human", "augmented"]
        assert examples[0].images[0].getpixel((0, 0)) == (255, 0, 0)


# Real charts


def test_the_real_charts_read_as_they_are(real: Path) -> None:
    for split, count in (("train", 200), ("val", 60)):
        source = open_file(ChartFiles, real / "charts" / split, split)
        assert len(source) == count
        labels = json.loads((real / "charts" / split / f"{split}_augmented.json").read_text())
        for index in range(0, count, 20):
            example = source.example(key(index))
            assert example.answer == labels[index]["label"].strip()
            assert example.prompt.startswith(labels[index]["query"].strip())
            assert example.images[0].mode == "RGB"
            assert example.meta.items() >= {"task": "chart", "kind": "augmented"}.items()
