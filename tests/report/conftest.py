"""Run folders as training and test leave them, written in a second, without a model."""

import json
import random
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from torch.utils.tensorboard import SummaryWriter

from datamodules.instrument import DrawnInstruments
from smmd_lightning.metrics import metrics_for
from smmd_lightning.report.ghost import DialPlace, draw_dial, draw_hands
from smmd_lightning.types import NumericExample, SampleKey

HOSTILE = (
    '<img src="https://evil.example/x.png" onerror="alert(1)"></script><script>document.title="owned"</script>&amp;'
)

CONFIG = """\
seed_everything: 1
run_dir: runs/quickstart
model:
  backbone:
    class_path: smmd_lightning.backbones.VisionLanguageBackbone
    init_args: {path: "tiny:qwen2-vl", from_scratch: true}
  numeric_loss: {class_path: smmd_lightning.losses.SMMDLoss}
  loss_weight: 0.3
  watch: within_5_minutes
"""


def row(task, number, prompt, truth, raw, meta):
    example = NumericExample(f"test-{number}", prompt, truth, meta={"task": task, **meta})
    score = metrics_for(task).score(raw, example)
    return {
        "id": example.id,
        "task": task,
        "prompt": prompt,
        "truth": score.truth,
        "raw": raw,
        "parsed": score.parsed,
        "error": score.error,
        "error_unit": metrics_for(task).unit,
        "correct": score.correct,
        "meta": example.meta,
    }


def clock_rows(folder, count, dice):
    (folder / "images").mkdir(exist_ok=True)
    rows = []
    for number in range(count):
        hour, minute = dice.randint(1, 12), dice.randint(0, 59)
        luck = dice.random()
        off = 0 if luck < 0.4 else dice.choice([-3, -2, -1, 1, 2, 4]) if luck < 0.7 else dice.choice([-60, 60])
        if luck > 0.88:
            off = dice.randint(-359, 360)
        total = (hour * 60 + minute + off) % 720
        raw = f"{total // 60 or 12:02d}:{total % 60:02d}"
        if luck > 0.96:
            raw = f"no idea {HOSTILE}"
        dial = [0.5, 0.5, 0.45, 0.0]
        meta = {
            "hour": hour,
            "minute": minute,
            "second": 0,
            "style": dice.choice(["plain", "varied"]),
            "shape": dice.choice(["round", "square"]),
            "numerals": dice.choice(["none", "arabic", "roman"]),
            "dial": dial,
        }
        made = row("clock", number, "What time does this clock show?", f"{hour:02d}:{minute:02d}", raw, meta)
        if number % 3 == 0:
            made["image"] = f"images/{number:06d}.jpg"
            picture = draw_hands(draw_dial(96), made["truth"], DialPlace(), colour=(20, 20, 20))
            picture.save(folder / made["image"], quality=85)
        rows.append(made)
    return rows


def chart_rows(folder, count, dice):
    (folder / "images").mkdir(exist_ok=True)
    rows = []
    for number in range(count):
        kind = dice.choice(["human", "augmented"])
        meta = {"kind": kind, "chart": dice.choice(["bar", "line", "pie"])}
        if number % 9 == 0:
            made = row("chart", number, "Is the red bar the highest?", "Yes", dice.choice(["Yes", "No"]), meta)
        else:
            truth = round(10 ** dice.uniform(0, 4), 1)
            raw = f"{truth * dice.choice([1, 1, 1, 1.02, 0.96, 1.3, 10]):.1f}"
            made = row("chart", number, f"What is the value of bar {number}? {HOSTILE}", f"{truth}", raw, meta)
        if number % 10 == 0:
            made["image"] = f"images/{number:06d}.jpg"
            picture = Image.new("RGB", (240, 160), "white")
            ImageDraw.Draw(picture).rectangle((40, 60, 80, 150), fill=(200, 40, 40))
            picture.save(folder / made["image"])
        rows.append(made)
    return rows


def math_rows(folder, count, dice):
    rows = []
    for number in range(count):
        truth = dice.randint(1, 999)
        wrong = dice.choice([str(truth), str(truth), str(truth + 1), str(truth)[::-1], "no number"])
        raw = f"She has {truth} - 1 + 1.\n#### {wrong}"
        rows.append(row("math", number, "How many apples?", f"{truth}", raw, {"kind": dice.choice(["add", "mul"])}))
    return rows


def instrument_rows(folder, count, dice):
    (folder / "images").mkdir(exist_ok=True)
    drawn = DrawnInstruments(test_size=count, families=["pressure_gauge", "column_thermometer", "panel_meter"]).open(
        "test"
    )
    rows = []
    for number in range(count):
        example = drawn.example(SampleKey(0, number))
        truth, low, high = (float(end) for end in (example.meta["value"], *example.meta["scale"]))
        read = truth + dice.choice([0, 0, 0.005, -0.02, 0.1, -0.3]) * (high - low)
        raw = "no idea" if dice.random() < 0.05 else f"{read:.3g} {example.meta['unit']}"
        facts = {name: value for name, value in example.meta.items() if name != "task"}
        made = row("instrument", number, example.prompt, example.answer, raw, facts)
        if number % 4 == 0:
            made["image"] = f"images/i{number:05d}.jpg"
            example.images[0].save(folder / made["image"])
        rows.append(made)
    return rows


MAKERS = {"clock": clock_rows, "chart": chart_rows, "math": math_rows, "instrument": instrument_rows}


def write_fake_run(folder: Path, tasks=("clock",), count=120, seed=0, training=True) -> Path:
    """Writes a run's folder with `count` answers of each task."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(seed)
    rows = [row for task in tasks for row in MAKERS[task](folder, count, dice)]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "predictions.jsonl").write_text(text, encoding="utf-8")
    share = sum(row["correct"] for row in rows) / len(rows)
    (folder / "metrics.json").write_text(json.dumps({"test/exact_match": share, "test/samples": len(rows)}))
    (folder / "config.yaml").write_text(CONFIG)
    facts = {
        "model": "tiny:qwen2-vl, 1.2 M parameters",
        "torch": "2.14.0",
        "hardware": "1 × CPU",
        "seconds": {"fit": 190},
    }
    (folder / "facts.json").write_text(json.dumps(facts))
    if training:
        write_log(folder, dice)
    return folder


def write_log(folder, dice):
    with SummaryWriter(str(folder)) as writer:
        for step in range(20, 3001, 20):
            ce = 2.3 * 0.998**step + 0.05 + 0.05 * dice.random()
            writer.add_scalar("train/ce", ce, step)
            writer.add_scalar("train/numeric", 0.6 * ce, step)
            writer.add_scalar("train/loss", 1.2 * ce, step)
            writer.add_scalar("lr-AdamW", 1e-3 * (1 - step / 3000), step)
            if step % 500 == 0:
                writer.add_scalar("val/ce", ce * 1.1, step)
                writer.add_scalar("val/numeric", 0.7 * ce, step)
                writer.add_scalar("val/exact_match", 0.4 * step / 3000, step)
                writer.add_scalar("val/within_5_minutes", 0.7 * step / 3000, step)


@pytest.fixture
def write_run():
    """The function `write_run(folder, tasks, count, seed, training)`, which returns the folder."""
    return write_fake_run


@pytest.fixture
def hostile():
    """Text that a model or data set may hold, and that must stay text."""
    return HOSTILE
