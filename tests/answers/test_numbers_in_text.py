"""Numbers in text: read as a person would."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.answers import (
    answer_text,
    find_numbers,
    number_in_words,
    option_letter,
    parse_number,
    parse_quantity,
    roman_number,
    same_text,
    without_thoughts,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("29", "29"),
        ("$29.00", "29"),
        ("72, altogether", "72"),
        ("#### 1,000", "1000"),
        ("-5.", "-5"),
        ("1.2e3", "1200"),
        ("1.2E-3", "0.0012"),
        ("1.2 × 10^5", "120000"),
        ("3 * 10**-2", "0.03"),
        ("−7", "-7"),
        ("–7", "-7"),
        ("+7", "7"),
        ("3/4", "0.75"),
        ("1 1/2", "1.5"),
        ("½", "0.5"),
        ("2½ cups", "2.5"),
        (r"\frac{3}{4}", "0.75"),
        (r"$-\dfrac{1}{2}$", "-0.5"),
        ("5.497 trillion", "5497000000000"),
        ("3.2M", "3200000"),
        ("1.5k", "1500"),
        ("$2.5bn", "2500000000"),
        ("5 hundred thousand", "500000"),
        ("3 lakh", "300000"),
        ("5kg", "5"),
        ("3rd", "3"),
        ("60%", "60"),
        ("60 percent", "60"),
        (r"12\%", "12"),
        ("1,234,567.89", "1234567.89"),
        ("12,34,567", "1234567"),
        ("1\u202f234\u00a0567", "1234567"),
        ("1 000 000", "1000000"),
        ("#### 10 000", "10000"),
        ("1’000", "1000"),
        ("1{,}000", "1000"),
        ("€1.234,56", "1234.56"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("USD 5", "5"),
        ("-.5", "-0.5"),
        ("７２", "72"),
        ("٣", "3"),
        ("答案是42。", "42"),
        ("**72**", "72"),
        ("x=-5", "-5"),
        ("65+", "65"),
        ("10³", "1000"),
        ("10⁻³", "0.001"),
        ("2·10⁵", "200000"),
        ("10^3", "1000"),
        ("10^{-2}", "0.01"),
        ("2**10", "1024"),
        ("1.5×10−3", "0.0015"),
        ("-2^2", "-4"),
        ("It costs 10 000 dollars.", "10000"),
        ("It costs €250 500 a year.", "250500"),
        ("100 000 people", "100000"),
        ("12 345,67 €", "12345.67"),
        ("6,4", "6.4"),
        ("3,14", "3.14"),
        ("0,125", "0.125"),
        ("-0,5", "-0.5"),
        ("3,5 kg", "3.5"),
        ("1,2 million", "1200000"),
        ("12,5 %", "12.5"),
        ("٣٫١٤", "3.14"),
        ("١٬٢٣٤", "1234"),
        ("٦٠٪", "60"),
        ("3.2 M", "3200000"),
        ("2,5 Mrd", "2500000000"),
        ("5 m", "5"),
        ("1 ½", "1.5"),
        ("negative 5", "-5"),
        ("minus $5", "-5"),
        ("the result is minus 3", "-3"),
        (r"2\frac{1}{2}", "2.5"),
        (r"-2\frac{1}{2}", "-2.5"),
        (r"\frac12", "0.5"),
        (r"\frac{3}4", "0.75"),
        (r"\cfrac{1}{2}", "0.5"),
        ("<think>Is it 4?</think>5", "5"),
        ("4 perhaps.</think>\n\n5", "5"),
        ("<think>4</think>5<think>6</think>", "5"),
    ],
)
def test_one_number_is_read_as_a_person_would(text, value):
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes",
        "no idea",
        "x2",
        "Q3",
        "inf",
        "nan",
        "infinity",
        "10/0",
        "12/25/2021",
        "192.168.1.1",
        "1e999999999",
        "9" * 301,
        "1e-999999999",
        "²",
        "①",
        "1e400",
        "_5",
        "---",
        "$",
        "%",
        ".",
        "x²",
        "10^999",
        "<think>The answer is 4",
        "<think>The answer is 4.</think>",
    ],
)
def test_what_is_no_number_gives_none(text):
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[2010, 2014]", ["2010", "2014"]),
        ("2010-2014", ["2010", "2014"]),
        ("2010–2014", ["2010", "2014"]),
        ("10 - 5", ["10", "5"]),
        ("10 -5", ["10", "-5"]),
        ("48/2=24", ["24", "24"]),
        ("3*4=12", ["3", "4", "12"]),
        ("$5-$10", ["5", "10"]),
        ("(3,14)", ["3", "14"]),
        ("[3,14]", ["3", "14"]),
        ("2010,2014", ["2010", "2014"]),
        ("10 minus 3", ["10", "3"]),
        ("x minus 3", ["3"]),
        ("$5 minus $3", ["5", "3"]),
        ("3² + 4² = 5²", ["9", "16", "25"]),
        ("10^3 = 1,000", ["1000", "1000"]),
        ("1.5*10-3 = 12", ["1.5", "10", "3", "12"]),
        ("scores 100 200 1", ["100", "200", "1"]),
        ("5 m^3 and 3 cm²", ["5", "3"]),
        ("1,2,3", ["1", "2", "3"]),
        ("3...4", ["3", "4"]),
        ("2.72 / 2720", ["2.72", "2720"]),
        ("rows 5 300 of 9", ["5300", "9"]),
        ("5 million, 3", ["5000000", "3"]),
    ],
)
def test_several_numbers_are_found_in_order(text, values):
    assert [number.value for number in find_numbers(text)] == [Decimal(value) for value in values]


def test_percent_signs_are_kept_beside_the_value():
    assert [(number.value, number.percent) for number in find_numbers("2% of 60")] == [(2, True), (60, False)]


@pytest.mark.parametrize(
    ("text", "marked", "last", "first"),
    [
        ("3 + 4 = 7", 7, 7, 3),
        ("I have 2, then 5 more.\n#### 7\nThat was fun, 10 of 10!", 7, 10, 2),
        ("The answer is 72. There were 48 of 24.", 72, 24, 72),
        ("So the final answer is: **$72**, not 71", 72, 71, 72),
        ("The answer is 5 * 3 = 15. So 2 left.", 15, 2, 5),
        (r"Since 2 < 3, \boxed{x = 12} of 40", 12, 40, 2),
        (r"\boxed{\frac{1}{4}} or 9", Decimal("0.25"), 9, Decimal("0.25")),
        ("<answer>7</answer> 8", 7, 8, 7),
        ("Answer: 6\nHere is why: 2 times 3.", 6, 3, 6),
        ("The answer is 4. No wait, the answer is 6. Since 1.", 6, 1, 4),
        ("#### 6\nThe answer is simple.", 6, 6, 6),
        ("The answer is\n\n12\n13", 12, 13, 12),
        ("Answer: 3) 17", 17, 17, 3),
        ("The answer is (3) 17, not 4", 17, 4, 3),
        ("The answer is (3).", 3, 3, 3),
        ("Answer: (3, 4)", 3, 4, 3),
        ("The answer is not known, but 5 is close", 5, 5, 5),
    ],
)
def test_the_rule_says_which_of_several_numbers_counts(text, marked, last, first):
    assert parse_number(text) == marked
    assert parse_number(text, rule="last") == last
    assert parse_number(text, rule="first") == first


@pytest.mark.parametrize(
    ("text", "auto", "comma", "point"),
    [
        ("1,250", "1250", "1.250", "1250"),
        ("1.250", "1.250", "1250", "1.250"),
        ("6,4", "6.4", "6.4", "4"),
        ("1.250,5", "1250.5", "1250.5", "5"),
        ("2.5", "2.5", "2.5", "2.5"),
        ("1,250.5", "1250.5", "1250.5", "1250.5"),
    ],
)
def test_a_task_says_what_its_commas_mean(text, auto, comma, point):
    assert parse_number(text) == Decimal(auto)
    assert parse_number(text, decimals="comma") == Decimal(comma)
    assert parse_number(text, decimals="point") == Decimal(point)


def test_an_unknown_decimal_sign_is_refused_by_name():
    with pytest.raises(ValueError, match=r"decimals must be .*, got 'dot'"):
        parse_number("5", decimals="dot")


def test_reasoning_between_tags_is_not_read():
    text = "<think>The answer is 4.</think>The answer is 5."
    assert len(without_thoughts(text)) == len(text)
    assert answer_text(text) == "5"
    assert same_text("<think>No?</think> Yes", "Yes")
    assert find_numbers(text)[0].value == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("seven", 7),
        ("Twenty-three apples", 23),
        ("one hundred and five", 105),
        ("The answer is minus two million three hundred thousand.", -2_300_000),
        ("nineteen ninety", None),
        ("two point zero five", Decimal("2.05")),
        ("no number", None),
        ("often", None),
        ("hundred", None),
        ("two or three", 3),
    ],
)
def test_numbers_in_words(text, value):
    assert number_in_words(text) == value


@given(st.integers(0, 10**15 - 1))
def test_any_whole_number_survives_being_said(number):
    assert number_in_words(in_words(number)) == number


def in_words(number):
    """Slow oracle: says a number as English does."""
    ones = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    ones += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
    tens = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if number < 20:
        return ones[number]
    if number < 100:
        return tens[number // 10] + (f"-{ones[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{ones[number // 100]} hundred" + (f" and {in_words(number % 100)}" if number % 100 else "")
    size = next(size for size in (10**12, 10**9, 10**6, 10**3) if number >= size)
    name = {10**3: "thousand", 10**6: "million", 10**9: "billion", 10**12: "trillion"}[size]
    return f"{in_words(number // size)} {name}" + (f" {in_words(number % size)}" if number % size else "")


@given(st.integers(1, 3999))
def test_any_roman_number_is_read(number):
    pairs = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")]
    pairs += [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    text, rest = "", number
    for value, letters in pairs:
        text, rest = text + letters * (rest // value), rest % value
    assert roman_number(text) == number
    assert roman_number(f"The answer is {text}.") == number


@pytest.mark.parametrize("text", ["", "I think so", "Civic", "IC", "ic", "VX"])
def test_what_is_no_roman_number_gives_none(text):
    assert roman_number(text) is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("(C)", "C"),
        ("C)", "C"),
        ("C) 5", "C"),
        ("c. five", "C"),
        ("**C**", "C"),
        ("Option (b)", "B"),
        ("C: 5", "C"),
        ("A bar", None),
        ("(C", None),
        ("Carbon", None),
        ("5", None),
        ("", None),
    ],
)
def test_the_letter_of_an_option(text, letter):
    assert option_letter(text) == letter


def test_an_unknown_rule_is_refused_by_name():
    with pytest.raises(ValueError, match=r'rule must be "marked", "last" or "first", got \'best\''):
        parse_number("5", rule="best")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5.", 5),
        ("'$1,020'", 1020),
        ("62.3 years", Decimal("62.3")),
        ("-3 °C", -3),
        ("60 %", 60),
        ("2c", None),
        ("65+", None),
        ("May '21", None),
        ("2 or 3", None),
        ("x = 5", None),
        ("-96*sqrt(17) - 4", None),
        ("12:48 PM", None),
    ],
)
def test_a_whole_text_is_a_number_or_not(text, value):
    quantity = parse_quantity(text)
    assert (quantity and quantity.value) == value


def test_answer_text_is_what_the_mark_announces():
    assert answer_text("48+24\n#### 72") == "72"
    assert answer_text("The answer is Yes. Because 3 > 2.") == "Yes"
    assert answer_text(r"so \boxed{a_{1}} holds") == "a_{1}"
    assert answer_text("  no mark here ") == "no mark here"


def test_same_text_ignores_case_quotes_and_spacing_only():
    assert same_text('"Yes."', "yes")
    assert same_text("2.72/2720", "2.72 / 2720")
    assert same_text("May ’21", "may '21")
    assert not same_text("Yes", "No")
    assert not same_text("65+", "65")
    assert not same_text("", "0")
    for nothing in (".", "$", '"'):
        assert not same_text("", nothing)
        assert same_text(nothing, nothing)


@given(
    st.integers(-(10**18), 10**18),
    st.sampled_from(["{}", "{:,}", "${}.", "the answer is {:,}!", "#### {:,}\n", "**{}**"]),
)
def test_any_integer_survives_the_ways_it_is_written(number, form):
    text = form.format(number)
    assert parse_number(text) == number
    assert parse_number(text.replace("-", "−")) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4))
def test_any_decimal_stays_exact(number):
    assert parse_number(f"{number}") == number
    assert parse_number(f"{number:,f} apples") == number


@given(st.lists(st.integers(-999, 999), min_size=1, max_size=5))
def test_all_numbers_of_a_list_are_found(numbers):
    assert [number.value for number in find_numbers(f"[{', '.join(map(str, numbers))}]")] == numbers
