"""Whatever a model writes, parsing neither fails nor takes long."""

import itertools
import time
from decimal import Decimal
from string import ascii_uppercase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_lightning.answers import (
    answer_text,
    find_numbers,
    find_times,
    number_in_words,
    option_letter,
    parse_number,
    parse_quantity,
    parse_time,
    roman_number,
    same_text,
    without_thoughts,
)

PIECES = [
    "1",
    "0",
    "9",
    "12",
    "007",
    ",",
    ".",
    "/",
    ":",
    "-",
    "−",
    "+",
    "$",
    "€",
    "%",
    "e",
    "E",
    "e9",
    "x",
    "*",
    "^",
    "10",
    "{",
]
PIECES += [
    "}",
    "[",
    "]",
    "(",
    "\\",
    "\\boxed{",
    "\\frac{",
    "####",
    "answer is ",
    "answer",
    "=",
    " ",
    "\n",
    "\u00a0",
    "'",
    "½",
    "²",
]
PIECES += [
    "million",
    "k",
    "M",
    "percent",
    "past ",
    "to ",
    "ten ",
    "half ",
    "o'clock",
    "pm",
    "hour",
    '"',
    "٣",
    "\ud800",
    "\0",
    "_",
]
PIECES += [
    "<think>",
    "</think>",
    "minus ",
    "negative ",
    "³",
    "⁻",
    "**",
    "two ",
    "hundred ",
    "point ",
    "XI",
    "(C) ",
    "٫",
]
PIECES += ["T03:05", "+02:00", " 000", "\\frac12", "h ", "C) "]


def everything(text):
    numbers = find_numbers(text)
    for number in numbers:
        assert number.value.is_finite()
        assert float(number.value) not in (float("inf"), float("-inf"))
        assert 0 <= number.start < number.end
    assert all(a.end <= b.start for a, b in itertools.pairwise(numbers))
    for rule in ("marked", "last", "first"):
        value = parse_number(text, rule)
        assert (value is None) == (not numbers)
        assert value is None or isinstance(value, Decimal)
        assert (parse_time(text, rule) is None) == (not find_times(text))
    quantity = parse_quantity(text)
    assert quantity is None or len(numbers) == 1
    assert same_text(text, text)
    assert len(without_thoughts(text)) == len(text)
    assert answer_text(text) in without_thoughts(text)
    assert answer_text("") == ""
    words, roman, letter = number_in_words(text), roman_number(text), option_letter(text)
    assert words is None or words.is_finite()
    assert roman is None or 0 < roman < 6000
    assert letter is None or letter in ascii_uppercase


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_read_without_an_error(text):
    everything(text)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_mixture_of_the_signs_that_matter_is_read_without_an_error(text):
    everything(text)


LONG = [
    "1",
    ",",
    "/",
    "1/",
    "1,000,",
    "1e999999999 ",
    "answer is ",
    "answer is = ",
    "answer is 1 = ",
    "\\boxed{",
    "$-",
    "ten ",
    " ",
]
LONG += [
    "five past ",
    "3:",
    "1 million million ",
    "1.",
    "٣",
    "1'",
    "1e5a",
    "\\frac{",
    "½",
    "1 / ",
    "1,00,",
    "[",
    "-",
    "1e",
    "{",
    "a.",
    "<think>",
    "</think>",
    "<think></think>",
    "minus ",
    "^",
    "2^",
    "1 000 ",
    "10 000",
    "two hundred ",
    "minus two point ",
    "MMXIV",
    "-- T",
    "1*10-",
    "3 h ",
]


@pytest.mark.parametrize("piece", LONG)
def test_long_texts_take_linear_time(piece):
    text = piece * (60_000 // len(piece))
    began = time.process_time()
    parse_number(text), parse_time(text), parse_quantity(text), answer_text(text), same_text(text, text)
    number_in_words(text), roman_number(text), option_letter(text)
    assert time.process_time() - began < 6  # about 0.5 s; a quadratic pattern would take half a minute or more


def test_a_number_after_a_megabyte_is_still_found():
    assert parse_number("9" * 1_000_000 + " so #### 72") == 72
