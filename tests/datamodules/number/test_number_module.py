"""One file of questions and numbers, in each layout that people have; made here, read as a run reads it."""

import json

import pytest
from PIL import Image

from datamodules import NumberColumns, NumberDataModule
from smmd_lightning.types import IGNORE_INDEX, BadSample, SampleKey

PART = {"type": "image", "image": "a.png"}
ASKED, TOLD = {"role": "user", "content": "<image>How much?"}, {"role": "assistant", "content": "62 psi"}
LAYOUTS = {
    "own": {"image": "a.png", "question": "How much?", "answer": "62 psi"},
    "several pictures": {"images": ["a.png", "a.png"], "question": "How much?", "answer": "62 psi"},
    "unit": {"file_name": "a.png", "query": "How much?", "label": 62, "unit": "psi"},
    "ms-swift": {"messages": [ASKED, TOLD], "images": ["a.png"]},
    "TRL": {"messages": [{"role": "user", "content": [PART, {"type": "text", "text": "How much?"}]}, TOLD]},
    "LLaMA-Factory": {
        "conversations": [{"from": "human", "value": "<image>How much?"}, {"from": "gpt", "value": "62 psi"}],
        "images": ["a.png"],
    },
}


def write(folder, rows, name="train.jsonl"):
    Image.new("RGB", (64, 64), "red").save(folder / "a.png")
    path = folder / name
    path.write_text(
        json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows), "utf-8"
    )
    return str(path)


def whole(path, processor="tiny:llava", **settings):
    return NumberDataModule(processor, path, val=path, test=path, batch_size=2, **settings)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["train.jsonl", "train.json"])
def test_every_layout_is_recognised_and_its_answer_is_what_is_labelled(tmp_path, layout, name):
    data = whole(write(tmp_path, [LAYOUTS[layout]] * 4, name))
    data.setup("fit")
    batch = next(iter(data.train_dataloader()))
    for row, example in zip(batch.labels, batch.examples, strict=True):
        ids = row[row != IGNORE_INDEX]
        assert data.collator.tokenizer.decode(ids[:-1]).strip() == example.answer == "62 psi"
        assert example.prompt == "How much?"
    pictures = 2 if layout == "several pictures" else 1
    assert len(data.example("train", SampleKey(0, 0)).images) == pictures
    assert batch.examples[0].meta["image"] == ("a.png" if pictures == 1 else ["a.png", "a.png"])


def test_text_alone_from_csv_with_columns_of_ones_own(tmp_path):
    (tmp_path / "t.csv").write_text("frage,antwort\n007 plus 1?,8\n")
    columns = NumberColumns(question="frage", answer="antwort")
    data = whole(str(tmp_path / "t.csv"), "tiny:qwen2", columns=columns, cache_dir=str(tmp_path / "cache"))
    example = data.example("train", SampleKey(0, 0))
    assert (example.prompt, example.answer, example.images) == ("007 plus 1?", "8", ())


def test_numbers_are_the_text_that_stands_in_the_file(tmp_path):
    path = tmp_path / "n.jsonl"
    long = "1" + "0" * 40
    path.write_text("".join(f'{{"question": "q{n}", "answer": {n}}}\n' for n in ("3", "2.50", "12.0", long)))
    data = whole(str(path), "tiny:qwen2")
    assert [data.example("val", SampleKey(0, index)).answer for index in range(4)] == ["3", "2.50", "12.0", long]


def test_a_system_message_stands_before_the_question_and_other_turns_are_named(tmp_path):
    system = {"role": "system", "content": "Be short."}
    rows = [{"messages": [system, ASKED, TOLD]}, {"messages": [ASKED, TOLD, ASKED, TOLD]}, {"messages": "none"}]
    data = whole(write(tmp_path, rows), "tiny:qwen2")
    assert data.example("val", SampleKey(0, 0)).prompt == "Be short.\n\nHow much?"
    with pytest.raises(BadSample, match=r"row 2.*the turns are user, assistant, user, assistant"):
        data.example("val", SampleKey(0, 1))
    with pytest.raises(BadSample, match=r"row 3.*no list of messages"):
        data.example("val", SampleKey(0, 2))


def test_one_question_about_every_picture_may_be_a_prompt(tmp_path):
    path = write(tmp_path, [{"image": "a.png", "answer": "5"}])
    with pytest.raises(ValueError, match="no column holds the question; set prompts"):
        whole(path).size("val")
    assert whole(path, prompts=["Read it."]).example("val", SampleKey(0, 0)).prompt == "Read it."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("null\n", "line 1: expected an object"),
        ('{"a": 1}\n[1]\n', "line 2: expected an object"),
        ('{"a"\n', "line 1 is not JSON"),
        ("\n", "the file holds no rows"),
        ('{"a": 1}\n', "the columns are 'a'; say in `columns`"),
    ],
)
def test_files_that_cannot_be_meant_are_refused_with_their_line(tmp_path, content, message):
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(ValueError, match=rf"bad\.jsonl.*{message}"):
        whole(str(tmp_path / "bad.jsonl"), "tiny:qwen2").size("train")


def test_rows_that_ask_the_same_are_in_one_split(tmp_path):
    rows = [{"question": f"{number % 50}?", "answer": "1"} for number in range(150)]
    data = NumberDataModule("tiny:qwen2", write(tmp_path, rows), fractions=(0.6, 0.2, 0.2))
    asked = {
        split: {data.example(split, SampleKey(0, index)).prompt for index in range(data.size(split))}
        for split in ("train", "val", "test")
    }
    assert sum(data.size(split) for split in asked) == 150
    assert len(asked["train"] | asked["val"] | asked["test"]) == sum(map(len, asked.values())) == 50
