"""Small copies of published benchmarks' layouts."""

import json

import pytest
from PIL import Image


def picture(folder, name, size=(64, 48)):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(folder / name)
    return name


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_measurebench(folder):
    kwargs = [
        {"interval": [4.2, 4.4], "units": ["bar"]},
        {"intervals": [["3:00", "3:05"], ["15:00", "15:05"]], "units": []},
    ]
    rows = [
        {
            "question_id": f"gauge_{number}",
            "question": "What is the reading of the instrument?",
            "image_type": kind,
            "design": "dial",
            "evaluator": "interval_matching",
            "evaluator_kwargs": json.dumps(rule),
            "image": picture(folder, f"img/{number}.png"),
        }
        for number, (kind, rule) in enumerate(zip(["gauge", "clock"], kwargs, strict=True))
    ]
    lines(folder / "data" / "real_world-00000-of-00001.jsonl", rows)


def write_chartqapro(folder):
    rows = [
        {
            "Question": ["How many?"],
            "Answer": ["12"],
            "Question Type": "Factoid",
            "Year": ["NO"],
            "Paragraph": "A text.",
        },
        {
            "Question": ["Which year?", "And before?"],
            "Answer": ["2010", "2009"],
            "Question Type": "Conversational",
            "Year": ["YES", "YES"],
            "Paragraph": "",
        },
    ]
    rows = [row | {"image": picture(folder, f"{number}.png")} for number, row in enumerate(rows)]
    lines(folder / "test.jsonl", rows)


def write_its_about_time(folder):
    picture(folder, "a.png", (200, 100))
    text = 'file_name,hour,minute,bbox_det\na.png,3,5,"[10, 20, 30, 20]"\n'
    (folder / "coco_final.csv").write_text(text, encoding="utf-8")


def write_ticktockvqa(folder):
    rows = [
        {"image_name": f"{split}.png", "image_path": picture(folder, f"images/{split}.png"), "hour": 3, "minute": 5,
         "time_string": "3:05", "split": split}
        for split in ("train", "test")
    ]  # fmt: skip
    (folder / "annotations.json").write_text(json.dumps(rows), encoding="utf-8")


def write_clockbench(folder):
    asked = {
        name: {"image_url": picture(folder, f"images/{name}.png"), "question_time": "What time is it?\n"}
        for name in "ab"
    }
    truths = {"a": {"valid": True, "hours": 3, "minutes": [4, 5], "seconds": False}, "b": {"valid": False}}
    answers = {name: {"answer_time": json.dumps(truth)} for name, truth in truths.items()}
    (folder / "input").mkdir(exist_ok=True)
    (folder / "input" / "input_sample.json").write_text(json.dumps(asked), encoding="utf-8")
    (folder / "input" / "answers_sample.json").write_text(json.dumps(answers), encoding="utf-8")


def write_chartqa(folder):
    for part in ("human", "augmented"):
        picture(folder, f"test/png/{part}.png")
        rows = [{"imgname": f"{part}.png", "query": "How many?", "label": "12"}]
        (folder / "test" / f"test_{part}.json").write_text(json.dumps(rows), encoding="utf-8")


WRITERS = {
    "measurebench": write_measurebench,
    "chartqapro": write_chartqapro,
    "its_about_time": write_its_about_time,
    "ticktockvqa": write_ticktockvqa,
    "clockbench": write_clockbench,
    "chartqa": write_chartqa,
}


@pytest.fixture
def write_benchmark():
    """Writes a benchmark of two questions at most into a folder: `write_benchmark(name, folder)`."""
    return lambda name, folder: WRITERS[name](folder)
