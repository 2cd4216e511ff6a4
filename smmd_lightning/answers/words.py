"""Numbers without digits: in English words, and Roman. Read only where a task expects them ("I" and "one" are words).

One real example::

    >>> number_in_words("The answer is minus three hundred and five."), number_in_words("two point five")
    (Decimal('-305'), Decimal('2.5'))
    >>> roman_number("It reads XIV."), roman_number("I think"), roman_number("IIII")
    (14, None, 4)
"""

from __future__ import annotations

import re
from decimal import Decimal

from smmd_lightning.answers.characters import plain_text
from smmd_lightning.answers.marks import answer_text

_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL = {word: number for number, word in enumerate(_ONES + _TEENS)} | {
    word: 10 * number for number, word in enumerate(_TENS, start=2)
}
_SCALES = {word: 1000**number for number, word in enumerate(["thousand", "million", "billion", "trillion"], start=1)}
_ANY = "|".join([*_SMALL, "hundred", *_SCALES])
_PHRASE = re.compile(
    rf"\b(?:(minus|negative)\s)?((?:{_ANY})(?:[\s-](?:and\s)?(?:{_ANY})\b)*)(?:\spoint((?:\s(?:{'|'.join(_ONES)})\b)+))?"
    r"(?![\w-])",
    re.IGNORECASE,
)
_ROMAN = re.compile(
    r"(?<![\w'])(?=[MDCLXVI])M{0,4}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})(?![\w'])", re.ASCII
)
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_MOST_WORDS = 40


def number_in_words(text: str) -> Decimal | None:
    """Returns the last number that a text gives in English words, after its answer mark if it has one; else None.

    Args:
        text: Whatever a model wrote.
    """
    found = None
    for phrase in _PHRASE.finditer(answer_text(plain_text(text))):
        value = _cardinal(re.split(r"[\s-]+", phrase[2].lower()))
        if value is None:
            continue
        digits = "".join(str(_SMALL[word]) for word in (phrase[3] or "").lower().split()[:_MOST_WORDS])
        found = Decimal(f"{value}.{digits}" if digits else value)
        found = -found if phrase[1] else found
    return found


def roman_number(text: str) -> int | None:
    """Returns the last Roman number in capitals that a text gives, after its answer mark if it has one; else None.

    A lone "I" counts only where nothing else is said.
    """
    said = answer_text(plain_text(text))
    numbers = [found[0] for found in _ROMAN.finditer(said)]
    if len(said.strip(" .!")) > 1:
        numbers = [number for number in numbers if number != "I"]
    if not numbers:
        return None
    values = [_ROMAN_VALUES[letter] for letter in numbers[-1]]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def _cardinal(words: list[str]) -> int | None:
    """Value of a phrase such as "two million three hundred and five"; None where the words are no single number."""
    if len(words) > _MOST_WORDS:
        return None
    total, group, last = 0, 0, 10**15
    for word in words:
        if word == "and":
            continue
        if word in _SCALES:
            if not group or _SCALES[word] >= last:
                return None
            total, group, last = total + group * _SCALES[word], 0, _SCALES[word]
        elif word == "hundred":
            if not 0 < group < 100:
                return None
            group *= 100
        else:
            value = _SMALL[word]
            room = 100 if group and group % 100 == 0 else 10 if group % 100 >= 20 and group % 10 == 0 else 0
            if group and (value == 0 or value >= room):
                return None
            group += value
    return total + group
