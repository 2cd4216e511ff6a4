"""Templated word problems: every step computes what it says."""

import re

import pytest
from opening import open_drawn

from datamodules.text_math.word_problems import TEMPLATES, DrawnWordProblems
from smmd_lightning.answers import parse_number
from smmd_lightning.types import SampleKey


def draw(number=60, split="train", epoch=0, **settings):
    source = open_drawn(DrawnWordProblems, number, split, **settings)
    return [source.example(SampleKey(epoch, index)) for index in range(number)]


def computed(expression: str) -> float:
    """Left to right with products first, enough for the marks of these templates."""
    total = 0.0
    for sign, term in re.findall(r"([+-]?)([\d*/]+)", expression):
        factors = re.findall(r"([*/]?)(\d+)", term)
        value = 1.0
        for operation, factor in factors:
            value = value / int(factor) if operation == "/" else value * int(factor)
        total += -value if sign == "-" else value
    return total


@pytest.mark.parametrize("template", sorted(TEMPLATES))
@pytest.mark.parametrize("largest", [5, 1000])
def test_every_step_is_right_and_the_last_one_is_the_answer(template, largest):
    for row in draw(templates=[template], largest=largest, calculator=True):
        marks = re.findall(r"<<([^=]*)=(\d+)>>(\d+)", row.answer)
        assert len(marks) >= 2
        for expression, value, again in marks:
            assert computed(expression) == int(value) == int(again)
        final = row.answer.rsplit("#### ", 1)[1]
        assert final == marks[-1][1]
        assert parse_number(row.answer) == int(final)
        assert int(final) > 0
        assert (row.meta["kind"], row.meta["task"], row.meta["numeric"]) == (template, "math", True)


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_what_the_first_steps_use_is_told_in_the_question(template):
    for row in draw(20, templates=[template], calculator=True):
        known = set(re.findall(r"\d+", row.prompt)) | {"2", "3", "100"}  # half, three days, per cent
        for expression, value in re.findall(r"<<([^=]*)=(\d+)>>", row.answer):
            assert set(re.findall(r"\d+", expression)) <= known
            known.add(value)


def test_marks_and_reasoning_can_be_left_out():
    whole, plain, short = (
        draw(10, **settings) for settings in ({"calculator": True}, {"calculator": False}, {"reasoning": False})
    )
    for a, b, c in zip(whole, plain, short, strict=True):
        assert a.prompt == b.prompt == c.prompt
        assert re.sub(r"<<.*?>>", "", a.answer) == b.answer
        assert b.answer.endswith(f"\n#### {c.answer}")
        assert c.answer.isdigit()


def test_all_templates_occur():
    assert {row.meta["kind"] for row in draw(300)} == set(TEMPLATES)


def test_a_sample_is_a_function_of_seed_split_epoch_and_index():
    assert draw(20, seed=3) == draw(20, seed=3)
    assert draw(20, seed=3) != draw(20, seed=4)
    assert draw(20, seed=3) != draw(20, seed=3, epoch=1)
    assert draw(20, "test") == draw(20, "test", epoch=1)


def test_splits_share_no_template_with_the_same_numbers():
    parts = [
        {(r.meta["kind"], *re.findall(r"\d+", r.prompt)) for r in draw(400, split, largest=8)}
        for split in ("train", "test")
    ]
    assert not parts[0] & parts[1]


def test_the_test_split_can_go_beyond_training():
    def largest(split):
        rows = draw(50, split, templates=["halves"], largest=10, test_largest=1000)
        return max(int(re.search(r"\d+", row.prompt)[0]) for row in rows)

    assert largest("train") <= 20
    assert largest("test") > 500


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"templates": ["trains"]}, r"templates must be some of halves, .* got \['trains'\]"),
        ({"templates": []}, "templates must be some of"),
        ({"largest": 1}, "largest must be 5 to 1000000, got 1"),
        ({"prompts": ["?"]}, r"each of prompts must hold \{question\}"),
    ],
)
def test_wrong_settings_are_named(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        open_drawn(DrawnWordProblems, 10, "train", **settings)


def test_a_split_that_gets_nothing_is_an_error_and_not_an_endless_search():
    with pytest.raises(ValueError, match="no word problem was found for the val split"):
        draw(1, "val", fractions=(1, 0, 0))
