"""The reader answers as the run did, from a checkpoint or an exported folder."""

import json
import re

import pytest
import torch
from PIL import Image

from smmd_lightning import Reader
from smmd_lightning.commands.export import export
from smmd_lightning.commands.read import main
from smmd_lightning.reading.pictures import find_pictures, open_picture
from smmd_lightning.reading.question import model_inputs, question_of
from smmd_lightning.types import SampleKey


def inputs_of(data, index):
    """What the collator of training makes of a sample of the test split."""
    batch = data.collator([data.example("test", SampleKey(0, index))], generation=True)
    return batch.inputs, batch.stop_ids


@pytest.mark.parametrize("case", ["llava", "qwen2-vl", "llama"])
def test_a_reader_asks_and_answers_as_the_run_did(checkpoint, data, case):
    reader, data = Reader(checkpoint(case)), data(case)
    for index in range(2):
        example = data.example("test", SampleKey(0, index))
        inputs, stop_ids = inputs_of(data, index)
        asked = model_inputs(reader.processor, reader.asking, example.prompt, example.images)
        assert torch.equal(asked["input_ids"], inputs["input_ids"])
        ids = reader.module.backbone.generate(inputs, 6, eos_token_id=stop_ids)
        expected = reader.tokenizer.batch_decode(ids, skip_special_tokens=True)[0].strip()
        reading = reader.read(example.images[0] if example.images else None, example.prompt)
        assert reading.text == expected
        assert reading.answers[0][1] <= 1
        assert reading.task == example.meta["task"]


def test_an_exported_folder_reads_as_its_checkpoint(checkpoint, data, tmp_path):
    folder = export(checkpoint("llava"), tmp_path / "out")
    picture = data("llava").example("test", SampleKey(0, 0)).images[0]
    first, second = Reader(checkpoint("llava")), Reader(folder)
    assert second.asking["prompts"] == first.asking["prompts"]
    assert second.max_new_tokens == first.max_new_tokens == 6
    one, other = first.read(picture), second.read(picture)
    assert (one.text, one.question, one.task) == (other.text, other.question, other.task)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="holds an adapter alone"):
        Reader(folder)


def test_what_cannot_be_read_says_why(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="There is no model at"):
        Reader(tmp_path / "none.ckpt")
    text, seeing = Reader(checkpoint("llama")), Reader(checkpoint("llava"))
    with pytest.raises(ValueError, match="reads text only"):
        text.read(Image.new("RGB", (8, 8)), "What?")
    with pytest.raises(ValueError, match="reads pictures; give one"):
        seeing.read()
    (tmp_path / "a.png").write_bytes(b"not a picture")
    with pytest.raises(ValueError, match=r"a\.png cannot be read as a picture"):
        seeing.read(tmp_path / "a.png")


def test_the_question_of_training_is_asked_where_it_is_clear():
    asking = {"prompts": {"clock": "Time?", "gauge": "Pressure?"}}
    assert question_of(asking, None, "gauge") == ("Pressure?", "gauge")
    assert question_of(asking, "Why?", None) == ("Why?", "number")
    assert question_of({}, "Why?", None) == ("Why?", "number")
    with pytest.raises(ValueError, match=r"several tasks \(clock, gauge\)"):
        question_of(asking, None, None)
    with pytest.raises(ValueError, match="task must be one of clock, gauge, got 'x'"):
        question_of(asking, None, "x")
    with pytest.raises(ValueError, match="does not say how it was asked"):
        question_of({}, None, None)


def test_the_command_prints_one_line_a_picture(checkpoint, tmp_path, capsys):
    for name in ("b.png", "a.jpg"):
        Image.new("RGB", (64, 64), "white").save(tmp_path / name)
    model = ["--model", str(checkpoint("llava"))]
    assert main([str(tmp_path), *model]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [str(tmp_path / "a.jpg"), str(tmp_path / "b.png")]
    assert main([str(tmp_path / "*.png"), *model, "--json", "--question", "What is the number?"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["question"] == "What is the number?"
    assert row["picture"] == str(tmp_path / "b.png")
    assert {"value", "unit", "interval", "text", "answers", "distributions"} <= set(row)


def test_one_bad_picture_does_not_end_the_others(checkpoint, tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(b"")
    Image.new("RGB", (64, 64)).save(tmp_path / "b.png")
    assert main([str(tmp_path), "--model", str(checkpoint("llava"))]) == 1
    seen = capsys.readouterr()
    assert seen.out.startswith(str(tmp_path / "b.png"))
    assert re.search(r"a\.png cannot be read as a picture", seen.err)
    assert main([str(tmp_path / "none"), "--model", "x"]) == 1
    assert "no picture is there" in capsys.readouterr().err


def test_pictures_are_upright_and_on_white(tmp_path):
    turned = Image.new("RGB", (4, 2), "blue")
    exif = turned.getexif()
    exif[0x0112] = 6  # the camera was turned: a quarter to the right
    turned.save(tmp_path / "a.jpg", exif=exif)
    assert open_picture(tmp_path / "a.jpg").size == (2, 4)
    clear = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    assert open_picture(clear).getpixel((0, 0)) == (255, 255, 255)
    (tmp_path / "note.txt").write_text("")
    assert find_pictures([str(tmp_path), str(tmp_path / "a.jpg")]) == [tmp_path / "a.jpg"]
    with pytest.raises(ValueError, match="no picture of a known kind"):
        find_pictures([str(tmp_path / "note.txt")])
