"""Numbers in text: read as a person would."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_lightning.answers import answer_text, find_numbers, parse_number, parse_quantity, same_text


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
        ("3,14", ["3", "14"]),
        ("1,2,3", ["1", "2", "3"]),
        ("3...4", ["3", "4"]),
        ("2.72 / 2720", ["2.72", "2720"]),
        ("rows 5 300 of 9", ["5", "300", "9"]),
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
        ("The answer is not known, but 5 is close", 5, 5, 5),
    ],
)
def test_the_rule_says_which_of_several_numbers_counts(text, marked, last, first):
    assert parse_number(text) == marked
    assert parse_number(text, rule="last") == last
    assert parse_number(text, rule="first") == first


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
