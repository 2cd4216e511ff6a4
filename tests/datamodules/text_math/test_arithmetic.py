"""Synthetic arithmetic: exact answers, honest splits, ranges that are kept."""

import ast
import operator
import re
from collections import Counter
from fractions import Fraction

import pytest
from opening import open_drawn

from datamodules.text_math import DrawnArithmetic
from smmd_lightning.types import SampleKey

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
ALL = ("addition", "subtraction", "multiplication", "division")


def evaluated(text: str) -> Fraction:
    """A second reading of the expression, by Python's own grammar and exact fractions."""

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.BinOp):
            return OPERATIONS[type(node.op)](value(node.left), value(node.right))
        assert isinstance(node, ast.Constant)
        return Fraction(ast.get_source_segment(text, node))

    return value(ast.parse(text, mode="eval").body)


def draw(number=200, split="train", epoch=0, **settings):
    source = open_drawn(DrawnArithmetic, number, split, **settings)
    return [source.example(SampleKey(epoch, index)) for index in range(number)]


def expression(example):
    return example.prompt.removeprefix("What is ").removesuffix("?")


@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("distribution", ["uniform", "digits", "log"])
def test_answers_are_exact(distribution, decimals):
    rows = draw(operations=ALL, digits=(1, 3), terms=(2, 5), distribution=distribution, decimals=decimals)
    for row in rows:
        assert evaluated(expression(row)) == Fraction(row.answer)
        assert row.meta["numeric"]
    assert {row.meta["kind"] for row in rows} == {*ALL, "chain"}
    assert any("(" in expression(row) for row in rows)


def test_divisions_come_out_even():
    rows = draw(operations=["division"], digits=(1, 2))
    assert all(row.answer.isdigit() for row in rows)
    assert all(not re.search(r"/ 0\b", row.prompt) for row in rows)


def test_steps_lead_to_the_result():
    for row in draw(operations=ALL, terms=(3, 4), reasoning=True):
        *steps, last = row.answer.split("\n")
        assert len(steps) in (2, 3)
        for line in steps:
            left, right = line.split(" = ")
            left = f"(0 {left[0]} {left[1:].replace(' ', ') ', 1)}" if left[0] == "-" else left
            assert evaluated(left) == (Fraction(right))
        assert last == f"#### {steps[-1].split(' = ')[1]}"
        assert evaluated(expression(row)) == Fraction(last.removeprefix("#### "))


def test_a_sample_is_a_function_of_seed_split_epoch_and_index():
    assert draw(20, seed=3) == draw(20, seed=3)
    assert draw(20, seed=3) != draw(20, seed=4)
    assert draw(20, seed=3) != draw(20, seed=3, epoch=1)
    assert draw(20, "test", seed=3) == draw(20, "test", seed=3, epoch=1)
    source = open_drawn(DrawnArithmetic, 20, "train")
    assert source.example(SampleKey(0, 7)) == [source.example(SampleKey(0, i)) for i in range(20)][7]


def canonical(row):
    left, sign, right = expression(row).split()
    return sign.join(sorted([left, right])) if sign in "+*" else left + sign + right


def test_splits_share_no_problem_not_even_turned_round():
    settings = {"operations": ["addition", "multiplication"], "digits": (1, 1), "fractions": (0.5, 0.25, 0.25)}
    parts = {split: {canonical(row) for row in draw(600, split, **settings)} for split in ("train", "val", "test")}
    assert not parts["train"] & parts["test"]
    assert not parts["train"] & parts["val"]
    assert not parts["val"] & parts["test"]
    assert len(set().union(*parts.values())) == 110  # 55 sums and 55 products of two digits, all dealt out


def test_all_problems_of_a_small_range_occur_about_equally_often():
    counts = Counter(row.answer for row in draw(2000, operations=["addition"], digits=(1, 1), fractions=(1, 0, 0)))
    assert set(counts) == {str(number) for number in range(19)}
    assert counts["9"] > counts["0"]


def operand_lengths(rows):
    return Counter(len(number) for row in rows for number in re.findall(r"\d+", row.prompt))


def test_the_distribution_decides_how_long_operands_are():
    settings = {"operations": ["addition"], "digits": (1, 4)}
    uniform, digits, log = (
        operand_lengths(draw(500, distribution=d, **settings)) for d in ("uniform", "digits", "log")
    )
    assert uniform[4] > 0.85 * 1000
    assert all(200 < count < 300 for count in digits.values())
    assert all(180 < count < 320 for count in log.values())
    assert set(digits) == {1, 2, 3, 4}


def test_digits_are_kept_at_both_ends():
    assert set(operand_lengths(draw(300, operations=["addition"], digits=(2, 3)))) == {2, 3}
    assert set(operand_lengths(draw(50, operations=["subtraction"], digits=(18, 18)))) == {18}


def test_negative_results_can_be_kept_out():
    assert any(row.answer.startswith("-") for row in draw(operations=["subtraction"]))
    assert not any(row.answer.startswith("-") for row in draw(operations=["subtraction"], negative=False))


def test_extrapolation_goes_beyond_training_in_digits_and_terms():
    rows = draw(100, "test", operations=["addition"], test="both", test_digits=(3, 4), test_terms=(3, 3))
    assert {row.meta["kind"] for row in rows[::2]} == {"addition"}
    assert {row.meta["kind"] for row in rows[1::2]} == {"chain, extrapolation"}
    assert set(operand_lengths(rows[1::2])) <= {3, 4}
    assert set(operand_lengths(rows[::2])) <= {1, 2}
    beyond = draw(20, "test", operations=["addition"], test="extrapolation", test_digits=(5, 5))
    assert {row.meta["regime"] for row in beyond} == {"extrapolation"}
    assert {row.meta["regime"] for row in draw(20, "val", test="extrapolation", test_digits=(5, 5))} == {
        "interpolation"
    }


def test_words_and_own_prompts():
    row = draw(1, operations=["multiplication"], style="words", prompts=["Compute {expression} now."])[0]
    assert re.fullmatch(r"Compute \d+ times \d+ now\.", row.prompt)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"operations": ["power"]}, r"operations must be some of addition, .* got \['power'\]"),
        ({"operations": []}, "operations must be some of"),
        ({"digits": (3, 2)}, r"digits must be two numbers from 1 to 18 in order, got \(3, 2\)"),
        ({"digits": (1, 19)}, "digits must be two numbers from 1 to 18"),
        ({"terms": (1, 2)}, "terms must be two numbers from 2 to 100"),
        ({"distribution": "normal"}, "distribution must be one of uniform, digits, log, got 'normal'"),
        ({"test": "extrapolation"}, "test='extrapolation' needs test_digits or test_terms"),
        ({"decimals": 2, "digits": (1, 2)}, r"decimals must be 0 to 1 \(the fewest digits\), got 2"),
        ({"fractions": (1, 1, 1)}, "fractions must be three shares"),
        ({"prompts": ["What?"]}, r"each of prompts must hold \{expression\}"),
    ],
)
def test_wrong_settings_are_named(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        open_drawn(DrawnArithmetic, 10, "train", **settings)


def test_a_split_that_gets_nothing_is_an_error_and_not_an_endless_search():
    source = open_drawn(DrawnArithmetic, 10, "val", fractions=(1, 0, 0))
    with pytest.raises(ValueError, match=r"no problem of 2 to 2 terms with 1 to 2 digits .* for the val split"):
        source.example(SampleKey(0, 0))
