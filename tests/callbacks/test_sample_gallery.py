"""Pictures in the log and beside the predictions, through the real command line."""

import json
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from smmd_lightning.callbacks import SampleGallery
from smmd_lightning.callbacks.sample_gallery import sample_picture, sheet, tile
from smmd_lightning.cli import main
from smmd_lightning.report.ghost import DialPlace, draw_dial, draw_hands
from smmd_lightning.types import Batch, NumericExample, SampleKey

QUICKSTART = str(Path(__file__).parents[2] / "configs" / "experiment" / "quickstart.yaml")


def run(command, folder, *more):
    small = ["--trainer.max_steps=4", "--trainer.val_check_interval=2", "--trainer.enable_progress_bar=false"]
    small += ["--data.init_args.limit=9", "--data.init_args.batch_size=2", "--data.init_args.num_workers=0"]
    return main([command, "--config", QUICKSTART, "--run_dir", str(folder), *small, *more])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    run("fit", folder, "--gallery.every_n_validations=2", "--gallery.size=64")
    run("test", folder, "--ckpt_path", str(folder / "checkpoints" / "last.ckpt"), "--results.save_images=5")
    return folder


def logged(folder, tag):
    return [
        (event.step, value)
        for file in sorted(folder.glob("events*"))
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
        if value.tag == tag
    ]


def test_every_second_validation_logs_a_gallery(trained):
    found = logged(trained, "gallery")
    assert [step for step, _ in found] == [4]
    width, height, content = found[0][1].tensor.string_val
    assert content.startswith(b"\x89PNG")
    assert (int(width) > 3 * 64, int(height) > 64) == (True, True)


def test_test_stores_the_pictures_that_the_rows_name(trained):
    rows = [json.loads(line) for line in (trained / "predictions.jsonl").read_text("utf-8").splitlines()]
    named = {row["id"]: row["image"] for row in rows if "image" in row}
    assert len(named) >= 4  # of five wanted: those that are neither worst nor random must be right
    assert sorted(named.values()) == [f"images/{file.name}" for file in sorted((trained / "images").iterdir())]
    data = main(["fit", "--config", QUICKSTART], run=False).datamodule
    for number, row in enumerate(rows):
        if "image" in row:
            drawn = data.example("test", SampleKey(0, number)).images[0]
            stored = np.asarray(Image.open(trained / row["image"]), dtype=float)
            assert np.abs(np.asarray(drawn, dtype=float) - stored).mean() < 4  # JPEG
            assert row["id"] == f"test-{number}"


def test_test_writes_the_page_with_the_facts_of_the_run(trained):
    page = (trained / "report.html").read_text("utf-8")
    assert page.count("data:image/jpeg;base64,") >= 5
    assert "SingleDeviceStrategy" in page
    assert "time, test" in page
    assert "time, fit" in page


def test_a_page_that_cannot_be_written_does_not_fail_the_test(trained, monkeypatch, caplog):
    import smmd_lightning.report

    def broken(*_, **__):
        raise RuntimeError("no disk")

    monkeypatch.setattr(smmd_lightning.report, "write_report", broken)
    with caplog.at_level(logging.WARNING):
        run("test", trained, "--ckpt_path", str(trained / "checkpoints" / "last.ckpt"), "--results.save_images=0")
    assert "no report was written (RuntimeError: no disk)" in caplog.text
    assert not list((trained / "images").iterdir())  # those of the evaluation before are gone
    assert (trained / "metrics.json").exists()


class FakeDataModule:
    def __init__(self, image=None):
        self.image = image
        self.asked = []

    def example(self, split, key):
        self.asked.append((split, key))
        return NumericExample("a", "q", "1", images=() if self.image is None else (self.image,))


def fake_trainer(datamodule, experiment):
    logger = SimpleNamespace(experiment=experiment)
    return SimpleNamespace(
        sanity_checking=False, is_global_zero=True, loggers=[logger], global_step=7, datamodule=datamodule
    )


def answer(number, **more):
    return {
        "id": f"v{number}",
        "task": "math",
        "truth": "1",
        "parsed": "2",
        "raw": "2 👍 ¼",
        "error": float(number),
        **more,
    }


def test_only_pictures_that_are_shown_are_read_again_by_their_keys():
    seen = []
    data = FakeDataModule(Image.new("RGB", (30, 20), "blue"))
    trainer = fake_trainer(data, SimpleNamespace(add_image=lambda *args, **kwargs: seen.append(args)))
    gallery = SampleGallery(count=1, size=40)
    gallery.on_validation_start(trainer, None)
    for place in range(0, 20, 2):
        keys = [SampleKey(0, place), SampleKey(0, place + 1, counted=place < 18)]
        batch = Batch({}, None, [], [key.counted for key in keys], keys=keys)
        gallery.on_validation_batch_end(trainer, None, None, batch, 0)  # of the loader with labels: no answers
        rows = [answer(key.index) for key in keys if key.counted]
        gallery.on_validation_batch_end(trainer, None, rows, batch, place)
    gallery.on_validation_end(trainer, None)
    assert data.asked[0] == ("val", SampleKey(0, 18))  # the worst one
    assert len(data.asked) == 2  # none is right, so there is no best one
    assert [(name, step) for name, _, step in seen] == [("gallery", 7)]


def test_a_gallery_that_fails_is_a_warning(caplog):
    def full(*_, **__):
        raise OSError("disk full")

    trainer = fake_trainer(FakeDataModule(), SimpleNamespace(add_image=full))
    gallery = SampleGallery()
    gallery.on_validation_start(trainer, None)
    gallery.on_validation_batch_end(trainer, None, [answer(1)], Batch({}, None, [], [True]), 0)
    with caplog.at_level(logging.WARNING):
        gallery.on_validation_end(trainer, None)
    assert "no gallery at step 7 (OSError: disk full)" in caplog.text


def test_no_picture_where_there_is_none_to_find():
    assert sample_picture(object(), "val", SampleKey(0, 0)) is None
    assert sample_picture(FakeDataModule(), "val", SampleKey(0, 0)) is None
    assert sample_picture(FakeDataModule(Image.new("RGB", (2, 2))), "val", None) is None


@pytest.mark.parametrize(("name", "value"), [("every_n_validations", -1), ("count", 0), ("size", 3)])
def test_settings_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=rf"gallery.{name} must be at least \d+, got {value}"):
        SampleGallery(**{name: value})


def dark(image, box):
    """Share of pixels in a box (in shares of the side) that are not nearly white."""
    side = image.width
    part = np.asarray(image.convert("L").crop(tuple(int(edge * side) for edge in box)))
    return (part < 200).mean()


def test_ghost_hands_point_where_the_time_read_stands():
    blank = Image.new("RGB", (100, 100), "white")
    three = draw_hands(blank, "3:00", DialPlace())
    assert dark(three, (0.55, 0.45, 0.7, 0.55)) > 0.1  # hour hand to the right
    assert dark(three, (0.45, 0.2, 0.55, 0.4)) > 0.1  # minute hand up
    assert dark(three, (0.0, 0.0, 0.4, 1.0)) == 0
    turned = draw_hands(blank, "3:00", DialPlace(rotation=90.0))
    assert dark(turned, (0.45, 0.55, 0.55, 0.7)) > 0.1
    shifted = draw_hands(blank, "6:30", DialPlace(centre=(0.2, 0.2), radius=0.2))
    assert dark(shifted, (0.0, 0.2, 0.4, 0.4)) > 0
    assert dark(shifted, (0.45, 0.45, 1, 1)) == 0
    assert draw_hands(blank, "no time", DialPlace()).tobytes() == blank.tobytes()
    assert blank.getextrema() == ((255, 255),) * 3  # the picture given stays as it is


def test_ghost_hands_cover_the_hands_that_the_face_was_drawn_with():
    import numpy.random as random

    from datamodules.clock.face import draw_face
    from datamodules.clock.face_sampling import sample_face

    for seed in range(12):
        spec = sample_face(random.default_rng(seed), "varied")
        meta = {"dial": [*spec.centre, spec.radius, spec.rotation]}
        size = 200
        shown, other = (draw_face(spec, hour, 40, 0, size=size) for hour in (2, 8))
        changed = np.abs(np.asarray(shown, int) - np.asarray(other, int)).sum(2) > 60  # where the hour hands are
        blank = Image.new("RGB", (size, size), "white")
        dial = DialPlace.of(meta)
        ghosts = [np.asarray(draw_hands(blank, f"{hour}:40", dial).convert("L")) < 200 for hour in (2, 8)]
        ghost = ghosts[0] ^ ghosts[1]  # the two hour hands alone
        assert (ghost & changed).sum() > 0.35 * ghost.sum()


def test_a_dial_is_read_from_four_numbers_alone():
    assert DialPlace.of({"dial": [0.5, 0.4, 0.3, -20]}) == DialPlace((0.5, 0.4), 0.3, -20)
    for bad in (None, [1, 2, 3], ["a", 1, 1, 1], [float("nan"), 0, 0, 0], "four"):
        assert DialPlace.of({"dial": bad}) is None


def test_tiles_of_clocks_without_a_known_dial_leave_the_photograph_uncovered():
    photo = Image.new("RGB", (100, 100), (10, 200, 10))
    row = {"task": "clock", "truth": "06:00", "parsed": "03:00", "error": 180.0, "raw": "3:00"}
    made = tile(row, photo, 90)
    assert made.getpixel((45, 45)) == (10, 200, 10)
    assert made.getpixel((80, 5)) == (10, 200, 10)
    assert made.crop((60, 60, 90, 90)).tobytes() != photo.crop((60, 60, 90, 90)).tobytes()
    assert tile(row, None, 90).size == made.size  # the schematic dial alone


def test_sheets_hold_one_line_a_group():
    tiles = [tile(answer(n), None, 50) for n in range(3)]
    made = sheet([("worst", tiles), ("best", tiles[:1])])
    assert made.width == 3 * 56 + 6
    assert made.height == 2 * (tiles[0].height + 30)
    assert draw_dial(40).size == (40, 40)
