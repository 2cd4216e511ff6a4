"""Each data module on small files made here, and on real material where it exists: samples in, batches out."""

import csv
import json

import pytest
import torch
from PIL import Image

from datamodules import (
    ChartDataModule,
    ChartFiles,
    ClockDataModule,
    ClockFiles,
    DrawnArithmetic,
    DrawnCharts,
    DrawnClocks,
    DrawnWordProblems,
    MathFiles,
    MixedDataModule,
    NumericDataModule,
    Part,
    TextMathDataModule,
)
from smmd_lightning.types import IGNORE_INDEX, SampleKey

VISION, TEXT = "tiny:llava", "tiny:qwen2"


def answers(module, batch):
    """What is labelled, decoded, without the end token."""
    texts = []
    for row in batch.labels:
        ids = row[row != IGNORE_INDEX]
        texts.append(module.collator.tokenizer.decode(ids[:-1]).strip())
    return texts


def check(module, split="train"):
    """Collates the first batch and checks that labels are the answers."""
    loader = module.train_dataloader() if split == "train" else module.val_dataloader()[0]
    batch = next(iter(loader))
    assert answers(module, batch) == [example.answer for example in batch.examples]
    return batch


def write_clocks(folder, rows):
    folder.mkdir(exist_ok=True)
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "hour", "minute"])
        writer.writeheader()
        for number, (hour, minute) in enumerate(rows):
            Image.new("RGB", (64, 64), (number * 9, 80, 90)).save(folder / f"{number}.png")
            writer.writerow({"image": f"{number}.png", "hour": hour, "minute": minute})
    return str(folder / "labels.csv")


def test_clocks_from_one_file_are_divided_and_nothing_is_lost(tmp_path):
    times = [(hour, minute) for hour in range(1, 11) for minute in (0, 7, 33)]
    path = write_clocks(tmp_path, times)
    module = ClockDataModule(VISION, ClockFiles(path, cache_dir=str(tmp_path / "cache")), batch_size=4)
    sizes = {split: module.size(split) for split in ("train", "val", "test")}
    assert sum(sizes.values()) == 30
    assert min(sizes.values()) > 0
    check(module)


def test_a_test_file_of_its_own_leaves_the_rest_to_training_and_validation(tmp_path):
    path = write_clocks(tmp_path / "a", [(hour, 5) for hour in range(1, 13)])
    test = write_clocks(tmp_path / "b", [(3, 30), (4, 40)])
    module = ClockDataModule(VISION, ClockFiles(path, test=test, cache_dir=str(tmp_path / "cache")))
    assert module.size("train") + module.size("val") == 12
    assert [example.answer for batch in module.test_dataloader() for example in batch.examples[:2]] == [
        "03:30",
        "04:40",
    ]


def test_an_unreadable_clock_is_skipped_and_named(tmp_path, caplog):
    path = write_clocks(tmp_path, [(hour, 5) for hour in range(1, 13)])
    (tmp_path / "3.png").write_bytes(b"not an image")
    shares = (1.0, 0.0, 0.0)
    files = ClockFiles(path, fractions=shares, cache_dir=str(tmp_path / "cache"))
    module = ClockDataModule(VISION, files, batch_size=12, max_bad_share=0.2)
    batch = check(module)
    assert "04:05" not in [example.answer for example in batch.examples]
    assert "3.png" in caplog.text
    both = ClockFiles(path, val=path, cache_dir=str(tmp_path / "cache"))
    caplog.clear()
    for loader in ClockDataModule(VISION, both, batch_size=12, max_bad_share=0.2).val_dataloader():
        assert sum(batch.counted.count(True) for batch in loader) == 11
    assert caplog.text.count("3.png") == caplog.text.count("Sample skipped") == 1  # one file, though two loaders saw it


def test_limit_and_seed_reach_the_samples():
    drawn = DrawnClocks(train_size=50, style="plain", image_size=64)
    one, other = (ClockDataModule(VISION, drawn, seed=seed, limit=7) for seed in (1, 2))
    assert one.size("train") == 7
    key = SampleKey(0, 0)
    assert (
        one.source("train").example(key).answer
        == ClockDataModule(VISION, drawn, seed=1).source("train").example(key).answer
    )
    assert [one.source("train").example(SampleKey(0, i)).answer for i in range(7)] != [
        other.source("train").example(SampleKey(0, i)).answer for i in range(7)
    ]


def test_charts_drawn_and_from_a_folder_like_chartqa(tmp_path):
    check(ChartDataModule(VISION, DrawnCharts(train_size=4, image_size=128), batch_size=4))
    for split in ("train", "val", "test"):
        (tmp_path / split / "png").mkdir(parents=True)
        Image.new("RGB", (80, 60), "white").save(tmp_path / split / "png" / "a.png")
        rows = [{"imgname": "a.png", "query": "How many?", "label": "6.2"}] * 2
        (tmp_path / split / f"{split}_human.json").write_text(json.dumps(rows))
    folders = {split: str(tmp_path / split) for split in ("train", "val", "test")}
    module = ChartDataModule(VISION, ChartFiles(**folders, cache_dir=str(tmp_path / "cache")), batch_size=2)
    batch = check(module)
    assert [example.meta["kind"] for example in batch.examples] == ["human", "human"]


@pytest.mark.parametrize("problems", [DrawnArithmetic(train_size=6), DrawnWordProblems(train_size=6)])
def test_drawn_problems(problems):
    check(TextMathDataModule(TEXT, problems, batch_size=6))


def test_problems_from_a_file_in_gsm8ks_form(tmp_path):
    rows = [
        {"question": f"What is {n} + 1?", "answer": f"It is <<{n}+1={n + 1}>>{n + 1}.\n#### {n + 1}"} for n in range(20)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for reasoning, first in ((True, "It is"), (False, "")):
        files = MathFiles(str(path), reasoning=reasoning, cache_dir=str(tmp_path / "cache"))
        batch = check(TextMathDataModule(TEXT, files, batch_size=4))
        assert all(example.answer.startswith(first) for example in batch.examples)
        assert not any("<<" in example.answer for example in batch.examples)


def mixture(**settings):
    parts = [
        Part(DrawnClocks(train_size=5, val_size=3, style="plain", image_size=64), weight=2),
        Part(DrawnArithmetic(train_size=9, val_size=4), weight=1),
    ]
    return MixedDataModule(VISION, parts, **settings)


def test_a_mixture_holds_each_part_by_its_weight_and_each_sample_equally_often():
    source = mixture(train_size=30).source("train")
    assert len(source) == 30
    examples = [source.example(SampleKey(epoch, index)) for epoch in (0, 1) for index in range(30)]
    clocks = [example for example in examples if example.meta["task"] == "clock"]
    sums = [example for example in examples if example.meta["task"] == "math"]
    assert (len(clocks), len(sums)) == (40, 20)
    # 40 drawings of a part of 5 are 8 passes, 20 of 9 are two and a bit; ids tell pass and place apart.
    assert len({example.id for example in clocks}) == 40
    places = [example.id.rsplit("-", 1)[1] for example in clocks]
    assert {places.count(place) for place in places} == {8}
    places = [example.id.rsplit("-", 1)[1] for example in sums]
    assert {places.count(place) for place in places} <= {2, 3}


def test_a_mixture_is_evaluated_on_every_sample_of_every_part_once():
    source = mixture().source("val")
    tasks = [source.example(SampleKey(0, index)).meta["task"] for index in range(len(source))]
    assert sorted(tasks) == ["clock"] * 3 + ["math"] * 4
    ids = [source.example(SampleKey(0, index)).id for index in range(len(source))]
    assert len(set(ids)) == 7


def test_a_limit_keeps_every_part_of_a_mixture_by_its_share():
    parts = [Part(DrawnArithmetic(val_size=300), weight=1), Part(DrawnWordProblems(val_size=100), weight=1)]
    module = MixedDataModule(TEXT, parts, limit=40)
    kinds = [module.example("val", SampleKey(0, index)).id[0] for index in range(module.size("val"))]
    assert (kinds.count("0"), kinds.count("1")) == (30, 10)


def test_text_and_image_rows_share_a_batch():
    module = mixture(train_size=30, batch_size=15)
    batch = check(module)
    tasks = [example.meta["task"] for example in batch.examples]
    assert {"clock", "math"} == set(tasks)
    assert batch.inputs["pixel_values"].shape[0] == tasks.count("clock")


def test_impossible_settings_are_named():
    with pytest.raises(ValueError, match="at least one task"):
        MixedDataModule(VISION, [])
    with pytest.raises(ValueError, match="weight must be above 0, got 0"):
        MixedDataModule(VISION, [Part(DrawnClocks(), weight=0)])
    for name, value in (("batch_size", 0), ("num_workers", -1), ("max_length", 0), ("limit", 0), ("max_bad_share", 2)):
        with pytest.raises(ValueError, match=f"{name} must .* got {value}"):
            ClockDataModule(VISION, **{name: value})


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_change_nothing(workers):
    drawn = DrawnClocks(train_size=6, style="plain", image_size=64)
    module = ClockDataModule(VISION, drawn, batch_size=2, num_workers=workers)
    alone = ClockDataModule(VISION, drawn, batch_size=2)
    for batch, expected in zip(module.train_dataloader(), alone.train_dataloader(), strict=True):
        torch.testing.assert_close(batch.inputs["pixel_values"], expected.inputs["pixel_values"])
        torch.testing.assert_close(batch.labels, expected.labels)


@pytest.mark.parametrize("folder", ["clockbench10", "rendered_5min"])
def test_real_clocks_are_read_as_they_are(real, tmp_path, folder):
    path = str(real / "clocks" / folder / "labels.jsonl")
    files = ClockFiles(path, fractions=(1.0, 0.0, 0.0), cache_dir=str(tmp_path))
    module = ClockDataModule(VISION, files, batch_size=4)
    assert module.size("train") == {"clockbench10": 8, "rendered_5min": 72}[folder]
    check(module)


def test_real_charts_are_read_as_they_are(real, tmp_path):
    charts = real / "charts"
    files = ChartFiles(str(charts / "train"), val=str(charts / "val"), cache_dir=str(tmp_path))
    module = ChartDataModule(VISION, files, batch_size=4)
    assert module.size("val") == 60
    check(module, "val")


@pytest.mark.parametrize(
    "file", ["gsm8k/train_256.jsonl", "text_math/gpt3_arithmetic.jsonl", "text_math/mathematics_dataset.jsonl"]
)
def test_real_problems_are_read_as_they_are(real, tmp_path, file):
    module = TextMathDataModule(TEXT, MathFiles(str(real / file), cache_dir=str(tmp_path)), batch_size=8)
    check(module)


def test_a_data_module_without_source_cannot_be_made():
    class Unfinished(NumericDataModule):
        pass

    with pytest.raises(TypeError, match=r"abstract method '?source"):
        Unfinished("tiny:qwen2")
