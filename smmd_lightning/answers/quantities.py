r"""Text -> numbers, as a person who reads English would take them.

Unusual: `Decimal` inside, exact until a metric makes a float of it; a number whose size no float64 holds
(hundreds of digits, "1e999999999") is no number. `separators` says what commas and points mean. A plain space
groups thousands where a sentence allows no other reading ("10 000 dollars"). Digits after a letter ("x2", "Q3") are a
name, digits after "^" a power.

One real example::

    >>> [str(number.value) for number in find_numbers("$5.5 trillion, up 2½ %; −7 of 1.2e3; 3/4 of 1,000; 2·10⁵.")]
    ['5500000000000', '2.5', '-7', '1200', '0.75', '1000', '200000']
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal

from smmd_lightning.answers.characters import plain_text
from smmd_lightning.answers.exact import MAX_DIGITS, divided, mixed, power, shifted
from smmd_lightning.answers.marks import AnswerRule, choose
from smmd_lightning.answers.separators import Decimals, Piece, pieces

_VULGAR = "¼½¾⅐-⅞"
_RUN = re.compile(rf"(?:\d|(?<![\w.])\.(?=\d))[\d.,'\u00a0]*|[{_VULGAR}]|\\[cdt]?frac(?![A-Za-z])", re.ASCII)
_ALL_SPACED = re.compile(r"\W{0,8}[1-9]\d{0,2}(?: \d{3})+(?!\d)\D{0,20}", re.ASCII)
_GROUPED = re.compile(
    r"(?<![\d.,/^])(?<!\d )(?:[1-9]\d?(?: \d{3}){1,4}|[1-9]\d\d(?: \d{3}){0,3} 000|(?<=[$€£¥])[1-9]\d\d(?: \d{3}){1,4})"
    r"(?:[.,]\d{1,2})?(?![\d/]|[.,]\d| \d)",
    re.ASCII,
)
_ONE_VULGAR = re.compile(rf" ?([{_VULGAR}])")

_CURRENCY = r"(?:US\$|[$€£¥₹₩₽₺₫₪฿₦¢]|\b(?:USD|EUR|GBP|CHF|CAD|AUD|INR|JPY|CNY|Rs\.?))"
_PREFIX = re.compile(rf"(?:([-+])?{_CURRENCY}\s?([-+])?|([-+]))\Z")
_SIGN_WORD = re.compile(r"(?:\A|(?<!\w))(?i:minus|negative)\s\Z", re.ASCII)
_OPERAND = re.compile(r"(?:[\d)\]}%]|(?:\A|[^\w'])[A-Za-z])\s?\Z", re.ASCII)
_LATEX_PART = r"(?:\{(-?\d{1,300})\}|\s?(\d))"
_LATEX_FRACTION = re.compile(rf"\s?{_LATEX_PART}\s?{_LATEX_PART}", re.ASCII)
_LATEX_MIXED = re.compile(rf"\s?\\[cdt]?frac{_LATEX_PART}{_LATEX_PART}", re.ASCII)
_FRACTION = re.compile(r"\s?/\s?(\d{1,300})(?!\d|\.\d)", re.ASCII)
_MIXED = re.compile(r"\s(\d{1,3})/(\d{1,3})(?![\d/]|\.\d)", re.ASCII)
_SLASHES = re.compile(r"(?:\s?/\s?\d++){2,}", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?\d++)(?!\w|\.\d)", re.ASCII)
_TENS = re.compile(r"\s?[*x]\s?10\s?(?:\^|\*\*)\s?\{?([-+]?\d{1,4})\}?", re.ASCII)
_LOST_RAISING = re.compile(r"[*x]10(-\d{1,2})(?![\d.,]|\s?[=*/+-])", re.ASCII)
"""Of "1.5×10−3", as copied from a page whose raised exponent was lost; behind a mantissa "d.d" only."""
_POWER = re.compile(r"(?:\s?\^\s?|\*\*)\{?\s?([-+]?\d{1,4})(?![\d.]*\d)\}?", re.ASCII)
_RAISED = re.compile(r"\^\s?[{(]?\s?[-+]?\Z")
_SCALE = re.compile(
    r"\s?(?i:(hundred|thousand|million|billion|trillion|quadrillion|lakh|crore|mln|mio|mrd|mn|bn|tn)s?)\b"
    r"|(\s?[MB]|[kKT])\b"
)
_PERCENT = re.compile(r"\s?(?:%|(?i:percent|per\scent|pct)\b)")
_UNIT = re.compile(r"\s?°\s?[CF]?|\s[A-Za-z]{1,14}(?:\^-?\d|/[A-Za-z]{1,4})?")
_POWERS = {
    name: places
    for places, names in {
        2: ["hundred"],
        3: ["thousand", "k", "K"],
        5: ["lakh"],
        6: ["million", "mln", "mio", "mn", "M"],
        7: ["crore"],
        9: ["billion", "bn", "mrd", "B"],
        12: ["trillion", "tn", "T"],
        15: ["quadrillion"],
    }.items()
    for name in names
}


@dataclass(frozen=True)
class Quantity:
    """A number found in a text.

    Attributes:
        value: The number, scales applied ("3.2M" is 3200000); a percentage is not divided ("60%" is 60).
        percent: Whether a percent sign or word follows.
        written: The digits as they stand in the text, without sign, currency and scale.
        start: Index of the first character, sign and currency included, in `plain_text` of the text.
        end: Index after the last character, scale and percent sign included.
    """

    value: Decimal
    percent: bool
    written: str
    start: int
    end: int


def find_numbers(text: str, decimals: Decimals = "auto") -> list[Quantity]:
    """Returns all numbers of `text`, in order. A range ("2010-2014") is two, a date ("1/2/2021") none.

    Args:
        text: Whatever a model wrote; its reasoning between tags is not read.
        decimals: Which sign is the decimal sign, see `separators`.
    """
    return _find(plain_text(text), decimals)


def parse_number(text: str, rule: AnswerRule = "marked", decimals: Decimals = "auto") -> Decimal | None:
    r"""Returns the number that `text` gives as its answer, or None.

    Args:
        text: Whatever a model wrote.
        rule: Which of several numbers counts. "marked": the one after the last answer mark that is followed
            by a number (`####`, `\boxed{}`, "the answer is"); without such a mark the last one. "last" and
            "first" ignore marks.
        decimals: Which sign is the decimal sign, see `separators`.

    >>> parse_number("It costs $29.00."), parse_number("72, altogether"), parse_number("no idea")
    (Decimal('29.00'), Decimal('72'), None)
    >>> parse_number("6,4 bar"), parse_number("1,250", decimals="comma"), parse_number("minus 3")
    (Decimal('6.4'), Decimal('1.250'), Decimal('-3'))
    """
    found = answer_quantity(text, rule, decimals)
    return None if found is None else found.value


def answer_quantity(text: str, rule: AnswerRule = "marked", decimals: Decimals = "auto") -> Quantity | None:
    """Returns the same number as `parse_number`, with what stands around it."""
    plain = plain_text(text)
    return choose(_find(plain, decimals), plain, rule)


def parse_quantity(text: str, decimals: Decimals = "auto") -> Quantity | None:
    """Returns the number that `text` is as a whole, or None where more is said.

    Currency, scale, percent, one unit after a space, quotes and a full stop may stand around it.

    >>> parse_quantity("5.497 trillion").value, parse_quantity("65+"), parse_quantity("2.72 / 2720")
    (Decimal('5497000000000'), None, None)
    """
    plain = plain_text(text).strip(" \r\n\u00a0\"'*`").rstrip(".,")
    if len(plain) > 2 * MAX_DIGITS:
        return None
    found = _find(plain, decimals)
    if len(found) != 1 or found[0].start:
        return None
    unit = _UNIT.match(plain, found[0].end)
    end = unit.end() if unit else found[0].end
    return found[0] if end == len(plain) else None


def _find(text: str, decimals: Decimals) -> list[Quantity]:
    if decimals not in ("auto", "point", "comma"):
        raise ValueError(f'decimals must be "auto", "point" or "comma", got {decimals!r}.')
    if len(text) < 100 and _ALL_SPACED.fullmatch(text):
        text = re.sub(r"(?<=\d) (?=\d)", "\u00a0", text)
    text = _GROUPED.sub(lambda grouped: grouped[0].replace(" ", "\u00a0"), text)
    found: list[Quantity] = []
    taken = 0  # the text before this is read; patterns look ahead from a number only over what they take
    while run := _RUN.search(text, taken):
        if run[0][0] == "\\":
            taken = run.end()
            if fraction := _LATEX_FRACTION.match(text, run.end()):
                value = divided(fraction[1] or fraction[2], fraction[3] or fraction[4])
                taken = _add(found, text, value, run.start(), fraction.end(), fraction[0])
            continue
        for start, end, digits in _pieces(text, run, decimals):
            if start >= taken:
                taken = _number(found, text, start, end, digits)
        taken = max(taken, run.end())
    return found


def _pieces(text: str, run: re.Match[str], decimals: Decimals) -> list[Piece]:
    start, end = run.span()
    if _ONE_VULGAR.match(run[0]):
        return [(start, end, "0")]
    listed = text[max(0, start - 1) : start] in ("(", "[") and text[end : end + 1] in (")", "]")
    return [(start + first, start + last, digits) for first, last, digits in pieces(run[0], decimals, listed)]


def _number(found: list[Quantity], text: str, start: int, end: int, digits: str | None) -> int:
    """Reads what stands around `digits`; returns where to go on."""
    slashes = _SLASHES.match(text, end)
    if slashes:
        return slashes.end()
    if digits is None or len(digits) > MAX_DIGITS:
        return end
    written, whole = text[start:end], digits.isdigit()
    value: Decimal | None = Decimal(digits)
    vulgar = _ONE_VULGAR.match(text, end if written.isascii() else start)
    if vulgar and whole:
        above, below = unicodedata.normalize("NFKC", vulgar[1]).split("⁄")
        value, end = mixed(digits, above, below), vulgar.end()
    elif whole and (part := _LATEX_MIXED.match(text, end)):
        parts = part[1] or part[2], part[3] or part[4]
        if "-" not in "".join(parts) and (joined := mixed(digits, *parts)) is not None:
            value, end = joined, part.end()
    elif (
        whole
        and len(digits) <= 3
        and (part := _MIXED.match(text, end))
        and (joined := mixed(digits, part[1], part[2])) is not None
    ):
        value, end = joined, part.end()
    elif whole and (fraction := _FRACTION.match(text, end)):
        value, end = divided(digits, fraction[1]), fraction.end()
    elif exponent := _EXPONENT.match(text, end) or _TENS.match(text, end) or _lost_raising(text, digits, end):
        places = exponent[1].lstrip("+-0") or "0"
        value = shifted(Decimal(digits), int(exponent[1]) if len(places) <= 4 else MAX_DIGITS**2)
        end = exponent.end()
    elif raised := _POWER.match(text, end):
        value, end = power(Decimal(digits), int(raised[1])), raised.end()
    return _add(found, text, value, start, end, written)


def _lost_raising(text: str, digits: str, end: int) -> re.Match[str] | None:
    return _LOST_RAISING.match(text, end) if digits[1:2] == "." else None


def _add(found: list[Quantity], text: str, value: Decimal | None, start: int, end: int, written: str) -> int:
    """Adds a number with its sign, currency, scale and percent sign; returns where to go on."""
    percent = False
    while scale := _SCALE.match(text, end):
        name = scale[1].lower() if scale[1] else scale[2].strip()
        value, end = None if value is None else shifted(value, _POWERS[name]), scale.end()
    if sign := _PERCENT.match(text, end):
        percent, end = True, sign.end()
    floor = found[-1].end if found else 0
    before = max(floor, start - 8)
    if _RAISED.search(text, before, start):
        return end  # the exponent of a unit or a letter
    prefix = _PREFIX.search(text, before, start)
    if prefix:
        outer, start = prefix[1] or prefix[3], prefix.start()
        if outer and start and (text[start - 1].isalnum() or text[start - 1] in ")]}%"):
            outer, start = None, start + 1  # "10-5", "2010-2014", "$5-$10": between two operands it is no sign
        if "-" in (outer, prefix[2]) and value is not None:
            value = value.copy_negate()
    elif start and (text[start - 1] == "_" or (text[start - 1].isascii() and text[start - 1].isalpha())):
        value = None
    word = _SIGN_WORD.search(text, max(floor, start - 9), start)
    if word and not _OPERAND.search(text, max(0, word.start() - 3), word.start()):
        start, value = word.start(), None if value is None else value.copy_negate()
    if value is not None:
        found.append(Quantity(value, percent, written, start, end))
    return end
