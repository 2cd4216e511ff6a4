"""Text -> numbers, as a person who reads English would take them.

Unusual: `Decimal` inside, exact until a metric makes a float of it; a number whose size no float64 holds
(hundreds of digits, "1e999999999") is no number. A comma groups thousands ("1,000", "1,00,000"); "3,14" is
two numbers. "1.234.567,8" is read as it is written on the continent, having no other reading. A plain space
groups thousands only where nothing else stands ("1 000 000"). Digits after a letter ("x2", "Q3") are a name.

One real example::

    >>> [str(number.value) for number in find_numbers("$5.5 trillion, up 2½ %; −7 of 1.2e3; 3/4 of 1,000.")]
    ['5500000000000', '2.5', '-7', '1200', '0.75', '1000']
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal

from smmd_lightning.answers.characters import plain_text
from smmd_lightning.answers.marks import AnswerRule, choose

MAX_DIGITS = 300
"""Most digits of a number, and largest power of ten: all values stay finite in float64."""

_EXACT = Context(prec=2 * MAX_DIGITS, Emax=10_000, Emin=-10_000, traps=[])
_DIVIDE = Context(prec=50, Emax=10_000, Emin=-10_000, traps=[])

_VULGAR = "¼½¾⅐-⅞"
_RUN = re.compile(rf"(?:\d|(?<![\w.])\.(?=\d))[\d.,'\u00a0]*|[{_VULGAR}]|\\[dt]?frac(?=\{{)", re.ASCII)
_PIECE = re.compile(r"\d+(?:\.\d+)*|(?<!\.)\.\d+", re.ASCII)
_ALL_SPACED = re.compile(r"\W{0,8}[1-9]\d{0,2}(?: \d{3})+(?!\d)\D{0,20}", re.ASCII)
_ENGLISH = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?", re.ASCII)
_SPACED = re.compile(r"[1-9]\d{0,2}(?:(?:\u00a0\d{3})+|(?:'\d{3})+)(?:\.\d+)?", re.ASCII)
_CONTINENTAL = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})", re.ASCII)
_ONE_VULGAR = re.compile(rf"[{_VULGAR}]")

_PREFIX = re.compile(
    r"(?:([-+])?(?:US\$|[$€£¥₹₩₽₺₫₪฿₦¢]|\b(?:USD|EUR|GBP|CHF|CAD|AUD|INR|JPY|CNY|Rs\.?))\s?([-+])?|([-+]))\Z"
)
_LATEX_FRACTION = re.compile(r"\{(-?\d{1,300})\}\{(-?\d{1,300})\}", re.ASCII)
_FRACTION = re.compile(r"\s?/\s?(\d{1,300})(?!\d|\.\d)", re.ASCII)
_MIXED = re.compile(r"\s(\d{1,3})/(\d{1,3})(?![\d/]|\.\d)", re.ASCII)
_SLASHES = re.compile(r"(?:\s?/\s?\d++){2,}", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?\d++)(?!\w|\.\d)", re.ASCII)
_POWER = re.compile(r"\s?[*x]\s?10\s?(?:\^|\*\*)\s?\{?([-+]?\d{1,4})\}?", re.ASCII)
_SCALE = re.compile(
    r"\s?(?i:(hundred|thousand|million|billion|trillion|quadrillion|lakh|crore|mln|mn|bn|tn)s?)\b|([kKMBT])\b"
)
_PERCENT = re.compile(r"\s?(?:%|(?i:percent|per\scent|pct)\b)")
_UNIT = re.compile(r"\s?°\s?[CF]?|\s[A-Za-z]{1,14}")
_POWERS = {
    name: power
    for power, names in {
        2: ["hundred"],
        3: ["thousand", "k", "K"],
        5: ["lakh"],
        6: ["million", "mln", "mn", "M"],
        7: ["crore"],
        9: ["billion", "bn", "B"],
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


def find_numbers(text: str) -> list[Quantity]:
    """Returns all numbers of `text`, in order. A range ("2010-2014") is two, a date ("1/2/2021") none."""
    return _find(plain_text(text))


def parse_number(text: str, rule: AnswerRule = "marked") -> Decimal | None:
    r"""Returns the number that `text` gives as its answer, or None.

    Args:
        text: Whatever a model wrote.
        rule: Which of several numbers counts. "marked": the one after the last answer mark that is followed
            by a number (`####`, `\boxed{}`, "the answer is"); without such a mark the last one. "last" and
            "first" ignore marks.

    >>> parse_number("It costs $29.00."), parse_number("72, altogether"), parse_number("no idea")
    (Decimal('29.00'), Decimal('72'), None)
    """
    found = answer_quantity(text, rule)
    return None if found is None else found.value


def answer_quantity(text: str, rule: AnswerRule = "marked") -> Quantity | None:
    """Returns the same number as `parse_number`, with what stands around it."""
    plain = plain_text(text)
    return choose(_find(plain), plain, rule)


def parse_quantity(text: str) -> Quantity | None:
    """Returns the number that `text` is as a whole, or None where more is said.

    Currency, scale, percent, one unit after a space, quotes and a full stop may stand around it.

    >>> parse_quantity("5.497 trillion").value, parse_quantity("65+"), parse_quantity("2.72 / 2720")
    (Decimal('5497000000000'), None, None)
    """
    plain = plain_text(text).strip(" \r\n\u00a0\"'*`").rstrip(".,")
    if len(plain) > 2 * MAX_DIGITS:
        return None
    found = _find(plain)
    if len(found) != 1 or found[0].start:
        return None
    unit = _UNIT.match(plain, found[0].end)
    end = unit.end() if unit else found[0].end
    return found[0] if end == len(plain) else None


def _find(text: str) -> list[Quantity]:
    if len(text) < 100 and _ALL_SPACED.fullmatch(text):
        text = re.sub(r"(?<=\d) (?=\d)", "\u00a0", text)
    found: list[Quantity] = []
    taken = 0  # the text before this is read; patterns look ahead from a number only over what they take
    while run := _RUN.search(text, taken):
        if run[0][0] == "\\":
            taken = run.end()
            if fraction := _LATEX_FRACTION.match(text, run.end()):
                value = _divided(fraction[1], fraction[2])
                taken = _add(found, text, value, run.start(), fraction.end(), fraction[0])
            continue
        for start, end, digits in _pieces(run):
            if start >= taken:
                taken = _number(found, text, start, end, digits)
        taken = max(taken, run.end())
    return found


def _pieces(run: re.Match[str]) -> list[tuple[int, int, str | None]]:
    """Splits a run of digits and separators into numbers: start, end, and digits as Decimal knows them."""
    text = run[0].rstrip(".,'\u00a0")
    start, whole = run.start(), (run.start(), run.start() + len(text))
    if len(text) <= 2 * MAX_DIGITS:
        if _ENGLISH.fullmatch(text) or _SPACED.fullmatch(text):
            return [(*whole, re.sub(r"[,'\u00a0]", "", text))]
        if _CONTINENTAL.fullmatch(text):
            return [(*whole, text.replace(".", "").replace(",", "."))]
    if _ONE_VULGAR.match(text):
        return [(*whole, "0")]
    return [
        (start + piece.start(), start + piece.end(), piece[0] if piece[0].count(".") < 2 else None)
        for piece in _PIECE.finditer(text)
    ]


def _number(found: list[Quantity], text: str, start: int, end: int, digits: str | None) -> int:
    """Reads what stands around `digits`; returns where to go on."""
    slashes = _SLASHES.match(text, end)
    if slashes:
        return slashes.end()
    if digits is None or len(digits) > MAX_DIGITS:
        return end
    written = text[start:end]
    vulgar = _ONE_VULGAR.match(text, end if written.isascii() else start)
    whole = digits.isdigit()
    value: Decimal | None = Decimal(digits)
    if vulgar and whole:
        above, below = unicodedata.normalize("NFKC", vulgar[0]).split("⁄")
        value, end = _EXACT.add(Decimal(digits), _DIVIDE.divide(Decimal(above), Decimal(below))), vulgar.end()
    elif whole and len(digits) <= 3 and (mixed := _MIXED.match(text, end)) and int(mixed[1]) < int(mixed[2]):
        value, end = (
            _EXACT.add(Decimal(digits), _DIVIDE.divide(Decimal(mixed[1]), Decimal(mixed[2]))),
            mixed.end(),
        )
    elif whole and (fraction := _FRACTION.match(text, end)):
        value, end = _divided(digits, fraction[1]), fraction.end()
    elif exponent := _EXPONENT.match(text, end) or _POWER.match(text, end):
        power = exponent[1].lstrip("+-0") or "0"
        value = _shifted(Decimal(digits), int(exponent[1]) if len(power) <= 4 else MAX_DIGITS**2)
        end = exponent.end()
    return _add(found, text, value, start, end, written)


def _add(found: list[Quantity], text: str, value: Decimal | None, start: int, end: int, written: str) -> int:
    """Adds a number with its sign, currency, scale and percent sign; returns where to go on."""
    percent = False
    while scale := _SCALE.match(text, end):
        name = scale[2] or scale[1].lower()
        value, end = None if value is None else _shifted(value, _POWERS[name]), scale.end()
    if sign := _PERCENT.match(text, end):
        percent, end = True, sign.end()
    floor = found[-1].end if found else 0
    prefix = _PREFIX.search(text, max(floor, start - 8), start)
    if prefix:
        outer, start = prefix[1] or prefix[3], prefix.start()
        if outer and start and (text[start - 1].isalnum() or text[start - 1] in ")]}%"):
            outer, start = (
                None,
                start + 1,
            )  # "10-5", "2010-2014", "$5-$10": between two operands it is no sign
        if "-" in (outer, prefix[2]) and value is not None:
            value = value.copy_negate()
    elif start and (text[start - 1] == "_" or (text[start - 1].isascii() and text[start - 1].isalpha())):
        value = None
    if value is not None:
        found.append(Quantity(value, percent, written, start, end))
    return end


def _divided(above: str, below: str) -> Decimal | None:
    if not Decimal(below):
        return None
    quotient = _DIVIDE.divide(Decimal(above), Decimal(below))
    return quotient if abs(quotient.adjusted()) <= MAX_DIGITS else None


def _shifted(value: Decimal, power: int) -> Decimal | None:
    """Returns value * 10**power without an exponent where it is whole, or None outside the limits."""
    if abs(value.adjusted() + power) > MAX_DIGITS:
        return None
    shifted = _EXACT.scaleb(value, power)
    return _EXACT.quantize(shifted, Decimal(1)) if shifted == _EXACT.to_integral_value(shifted) else shifted
