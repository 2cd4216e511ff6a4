"""Which answers are the same: words, options, and numbers with and without a percent sign.

One real example::

    >>> [same_words(*pair) for pair in (("C) 5", "C"), ("Yes, it is.", "yes"), ("", "."))]
    [True, True, False]
"""

from __future__ import annotations

import re
from decimal import Context, Decimal

from smmd_lightning.answers import Quantity, answer_text, option_letter, same_text

ARITHMETIC = Context(prec=50, Emax=10_000, Emin=-10_000, traps=[])

_FIRST_WORD = re.compile(r"\W*(\w+)")


def relative_error(prediction: Decimal, target: Decimal) -> Decimal:
    """Returns |prediction - target| / |target|: infinite for a target of 0, unless the prediction is 0 too.

    >>> relative_error(Decimal(95), Decimal(100)), relative_error(Decimal(100), Decimal(95)) > Decimal("0.05")
    (Decimal('0.05'), True)
    """
    if prediction == target:
        return Decimal(0)
    if not target:
        return Decimal("Infinity")
    return ARITHMETIC.divide(ARITHMETIC.subtract(prediction, target).copy_abs(), target.copy_abs())


def comparable(found: Quantity, gold: Quantity) -> Decimal:
    """Returns the answer's value in the way of writing percentages that brings it closest to the truth.

    "60%", "60" and "0.6" are the same answer to a truth of "60%"; without any percent sign numbers are numbers.
    """
    if found.percent == gold.percent:
        return found.value
    other = ARITHMETIC.scaleb(found.value, -2 if found.percent else 2)
    return min(found.value, other, key=lambda value: relative_error(value, gold.value))


def written(quantity: Quantity) -> str:
    """Writes a number that was read, with its percent sign."""
    return f"{quantity.value:f}{'%' if quantity.percent else ''}"


def same_words(prediction: str, target: str) -> bool:
    """Whether an answer in words is right.

    Case, quotes and spacing do not matter. Yes and no count by the first word, options ("C") however they are dressed
    ("(C)", "C) 5"). An answer without any sign of content is never right.
    """
    said, truth = answer_text(prediction), answer_text(target)
    if same_text(prediction, target):
        return bool(prediction.strip())
    if not said or not truth:
        return False
    if same_text(said, truth):
        return True
    if (letter := _sole_option(truth)) is not None and option_letter(said) == letter:
        return True
    word = _FIRST_WORD.match(said)
    return truth.strip().lower() in ("yes", "no") and word is not None and same_text(word[1], truth)


def _sole_option(truth: str) -> str | None:
    bare = truth.strip("() .*")
    return bare.upper() if len(bare) == 1 and bare.isascii() and bare.isalpha() else None
