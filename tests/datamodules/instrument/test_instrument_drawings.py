"""Drawn instruments: the value is read back from the pixels, and the facts hold what metrics need."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from PIL import Image

from datamodules import DrawnInstruments
from datamodules.instrument import dial_scales, straight
from datamodules.instrument.canvas import Canvas
from datamodules.instrument.catalog import CLOCK, FAMILIES
from datamodules.instrument.look import STYLES, Camera, sample_camera, sample_look
from datamodules.instrument.scale_reading import Scale, plain, scales
from datamodules.sources.dice import Dice
from smmd_lightning.answers import parse_number, parse_time
from smmd_lightning.metrics import metrics_for
from smmd_lightning.types import SampleKey

SIGNAL = (255, 0, 255)
NEEDLES = [
    "pressure_gauge",
    "dial_thermometer",
    "speedometer",
    "panel_meter",
    "weighing_scale",
    "fuel_gauge",
    "compass",
]


def drawn(family, seed, style="plain", size=224):
    """A drawing and its pixels, the needle in a colour that nothing else has."""
    dice = Dice(np.random.default_rng(seed))
    look = replace(sample_look(dice, style), signal=SIGNAL)
    canvas = Canvas(size, look.wall)
    drawing = FAMILIES[family](canvas, dice, look)
    return drawing, np.asarray(canvas.finish()).astype(int)


def place_of(drawing, value):
    """Where a value lies on the drawing's scale, between the places that are told."""
    reading, points = drawing.reading, np.array(drawing.scale)
    share = float((value - reading.low) / (reading.high - reading.low)) * (len(points) - 1)
    first = min(int(share), len(points) - 2)
    return points[first] + (share - first) * (points[first + 1] - points[first])


def angle(start, end):
    return math.degrees(math.atan2(end[0] - start[0], start[1] - end[1]))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("family", NEEDLES)
def test_a_needle_points_at_its_value(family, style):
    for seed in range(12):
        drawing, pixels = drawn(family, seed, style, size=320)
        rows, columns = np.nonzero(np.abs(pixels - SIGNAL).sum(axis=2) < 90)
        places = np.stack([columns, rows], axis=1) / 320 + 0.5 / 320
        tip = places[np.argmax(np.linalg.norm(places - drawing.pivot, axis=1))]
        apart = angle(drawing.pivot, tip) - angle(drawing.pivot, place_of(drawing, drawing.reading.value))
        # Straight lines between the places told leave an arc by up to a degree; a tip is two pixels wide.
        assert abs((apart + 180) % 360 - 180) < 2.5, (seed, drawing.reading)


@pytest.mark.parametrize("family", ["column_thermometer", "measuring_cylinder", "battery_gauge"])
def test_a_level_stands_at_its_value(family):
    for seed in range(12):
        drawing, pixels = drawn(family, seed)
        x, y = place_of(drawing, drawing.reading.value) * 224
        lying = family == "battery_gauge"
        strip = pixels[round(y), :] if lying else pixels[:, round(x)]
        level = x if lying else y
        if not 25 < level < 200:
            continue  # too near an end to look on both sides of it
        before, after = strip[round(level) - 3], strip[round(level) + 3]
        assert np.abs(before - after).sum() > 40, (seed, drawing.reading)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("family", [*FAMILIES, CLOCK])
def test_facts_and_answer_agree(family, style):
    source = DrawnInstruments(families=[family], style=style, image_size=96, test_size=25).open("test", seed=3)
    for index in range(25):
        example = source.example(SampleKey(0, index))
        (image,) = example.images
        assert (image.mode, image.size) == ("RGB", (96, 96))
        meta = example.meta
        assert meta["kind"] == family
        if family == CLOCK:
            time = parse_time(example.answer)
            assert (time.hour, time.minute) == (meta["hour"], meta["minute"])
            continue
        value, (low, high) = Decimal(meta["value"]), map(Decimal, meta["scale"])
        assert low <= value <= high
        assert parse_number(example.answer.removesuffix(meta["unit"])) == value
        assert example.answer.endswith(meta["unit"])
        assert "e" not in meta["value"].lower()
        below, above = map(Decimal, meta["interval"])
        assert below <= value <= above
        assert above - below == Decimal(meta["tick"])
        score = metrics_for("instrument").score(example.answer, example)
        assert score.correct
        assert score.error == 0.0


def test_a_sample_depends_on_seed_epoch_and_index_alone():
    def picture(split, key, seed=1):
        return DrawnInstruments(image_size=64).open(split, seed=seed).example(key).images[0].tobytes()

    for index in range(20):
        assert picture("train", SampleKey(2, index)) == picture("train", SampleKey(2, index))
        assert picture("val", SampleKey(0, index)) == picture("val", SampleKey(5, index))
        assert picture("train", SampleKey(0, index)) != picture("train", SampleKey(1, index))
        assert picture("test", SampleKey(0, index)) != picture("test", SampleKey(0, index), seed=2)


def test_evaluation_asks_every_family_equally_often():
    source = DrawnInstruments(image_size=32).open("val", seed=0)
    kinds = [source.example(SampleKey(0, index)).meta["kind"] for index in range(2 * (len(FAMILIES) + 1))]
    assert all(kinds.count(family) == 2 for family in (*FAMILIES, CLOCK))


def test_with_two_scales_the_question_names_the_unit():
    source = DrawnInstruments(families=["dial_thermometer"], image_size=32, test_size=60).open("test", seed=0)
    asked = [source.example(SampleKey(0, index)) for index in range(60)]
    named = [example for example in asked if "Read the scale in" in example.prompt]
    assert named
    assert all(example.prompt.endswith(f"in {example.meta['unit']}.") for example in named)
    assert {"°C", "°F"} == {example.meta["unit"] for example in named}


def test_two_scales_of_one_needle_agree():
    for celsius, fahrenheit in (*dial_scales.CELSIUS_AND_FAHRENHEIT, *straight.COLUMN):
        for end in ("low", "high"):
            assert getattr(celsius, end) * 9 / 5 + 32 == getattr(fahrenheit, end)
    factors = {("bar", "psi"): 14.504, ("psi", "kPa"): 6.895, ("bar", "kPa"): 100.0}
    for first, second in dial_scales.BAR_AND_PSI:
        ratio = float(second.span / first.span)
        assert ratio == pytest.approx(factors[first.unit, second.unit], rel=1e-3)


def test_a_vernier_line_meets_the_beam_at_the_tenth():
    for seed in range(30):
        drawing, _ = drawn("caliper", seed, size=64)
        value = drawing.reading.value
        tenth = int(value * 10) % 10
        assert (value + Decimal("0.9") * tenth) % 1 == 0


def test_a_place_is_found_again_in_a_tilted_picture():
    found = 0
    for seed in range(40):
        camera = replace(sample_camera(Dice(np.random.default_rng(seed)), "varied"), glare=None, specks=(), blur=0.0)
        if camera.corners is None:
            continue
        found += 1
        picture = Image.new("RGB", (400, 400))
        place = (0.3 + 0.01 * seed, 0.62)
        picture.paste((255, 255, 255), tuple(round(400 * at) + step for step in (-3, 4) for at in place))
        rows, columns = np.nonzero(np.asarray(camera.take(picture, (0, 0, 0)))[:, :, 0] > 100)
        middle = (columns.mean() + 0.5) / 400, (rows.mean() + 0.5) / 400
        assert math.dist(middle, camera.seen(place)) < 1.5 / 400
    assert found > 5
    assert Camera().seen((0.2, 0.9)) == (0.2, 0.9)


def test_ticks_of_a_scale_stand_at_multiples():
    assert [plain(value) for value, rank in scales("°F", (32, 68, 20, 4))[0].ticks() if rank == 2] == ["40", "60"]
    scale = Scale(Decimal(0), Decimal(1), Decimal("0.5"), Decimal("0.1"), "A")
    assert [rank for _, rank in scale.ticks()] == [2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"families": ["sundial"]}, "families must be some of pressure_gauge"),
        ({"families": []}, "got none"),
        ({"style": "fancy"}, "style must be one of"),
        ({"image_size": 8}, "image_size must be at least 32"),
        ({"test_size": -1}, "test_size must not be negative"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        DrawnInstruments(**settings).open("test", seed=0)
