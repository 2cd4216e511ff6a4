"""Drawn scenes: the answer is what a person who looks at the picture's content would say, and what is drawn."""

from collections import Counter

import numpy as np
import pytest
from opening import open_drawn

from datamodules import CaptionDataModule, DrawnCaptions
from datamodules.captions.scene import COLOURS, KINDS, PLACES, SHAPES, Scene, Thing, draw_scene, sample_scene
from datamodules.sources.dice import Dice
from smmd_lightning.types import SampleKey


def scenes(kind, many=200):
    return [sample_scene(Dice(np.random.default_rng(seed)), [kind]) for seed in range(many)]


def test_answers_follow_from_the_things_in_the_scene():
    for kind in KINDS:
        for scene in scenes(kind):
            things = scene.things
            assert len({thing.place for thing in things}) == len(things), "one thing to a place"
            asked = next((shape for shape in SHAPES if shape in scene.question), None)
            shown = [thing for thing in things if thing.what == asked]
            if kind == "count":
                assert scene.answer == str(len(shown))
            elif kind == "colour":
                assert [thing.colour for thing in shown] == [scene.answer]
            elif kind == "where":
                assert [PLACES[thing.place] for thing in shown] == [scene.answer]
            else:
                assert [thing.what for thing in things if thing.what not in SHAPES] == [scene.answer]


def test_no_answer_can_be_guessed_from_the_question_alone():
    for kind, least in {"colour": 8, "count": 7, "where": 9, "number": 50, "word": 20}.items():
        answers = Counter(scene.answer for scene in scenes(kind, 600))
        assert len(answers) >= least
        assert answers.most_common(1)[0][1] < 0.3 * 600


@pytest.mark.parametrize("place", [0, 4, 8])
@pytest.mark.parametrize("what", [*SHAPES, "425", "north"])
def test_a_thing_is_drawn_in_its_colour_at_its_place_alone(what, place):
    scene = Scene((Thing(what, "red", place),), "", "", "where")
    pixels = np.asarray(draw_scene(scene, 192, Dice(np.random.default_rng(0)))).astype(int)
    red = np.abs(pixels - COLOURS["red"]).sum(axis=2) < 30
    down, right = divmod(place, 3)
    cell = red[64 * down : 64 * down + 64, 64 * right : 64 * right + 64]
    assert cell.sum() == red.sum() > 20


def test_a_sample_is_a_function_of_its_key():
    first, again = open_drawn(DrawnCaptions, 10, "train", seed=3), open_drawn(DrawnCaptions, 10, "train", seed=3)
    a, b = first.example(SampleKey(1, 4)), again.example(SampleKey(1, 4))
    assert (a.id, a.prompt, a.answer) == (b.id, b.prompt, b.answer)
    assert a.images[0].tobytes() == b.images[0].tobytes()
    assert a.images[0].size == (112, 112)
    other = first.example(SampleKey(2, 4))
    assert other.images[0].tobytes() != a.images[0].tobytes()
    val = open_drawn(DrawnCaptions, 10, "val", seed=3)
    assert val.example(SampleKey(0, 1)).images[0].tobytes() == val.example(SampleKey(5, 1)).images[0].tobytes()


def test_it_goes_through_a_processor_with_labels_on_the_answer():
    data = CaptionDataModule("tiny:llava", DrawnCaptions(train_size=4, val_size=2, test_size=2), batch_size=2)
    batch = next(iter(data.train_dataloader()))
    labelled = [row[row >= 0] for row in batch.labels]
    tokenizer = data.collator.tokenizer
    said = [tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in labelled]
    assert said == [example.answer for example in batch.examples]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kinds": ["smell"]}, "kinds must be some of"),
        ({"image_size": 8}, "image_size must be at least 32"),
        ({"prompts": ["Look."]}, "where the question goes"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        open_drawn(DrawnCaptions, 4, "train", **settings)
