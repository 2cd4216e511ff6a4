"""Arithmetic of numbers in text: exact, and bounded to what float64 holds.

One real example::

    >>> divided("3", "4"), shifted(Decimal("3.2"), 6), power(Decimal(2), 10), power(Decimal(10), 999)
    (Decimal('0.75'), Decimal('3200000'), Decimal('1024'), None)
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

MAX_DIGITS = 300
"""Most digits of a number, and largest power of ten: all values stay finite in float64."""

EXACT = Context(prec=2 * MAX_DIGITS, Emax=10_000, Emin=-10_000, traps=[])
_DIVIDE = Context(prec=50, Emax=10_000, Emin=-10_000, traps=[])


def divided(above: str, below: str) -> Decimal | None:
    """Returns a quotient to 50 digits, or None for a divisor of 0 and outside the limits."""
    if not Decimal(below):
        return None
    quotient = _DIVIDE.divide(Decimal(above), Decimal(below))
    return quotient if abs(quotient.adjusted()) <= MAX_DIGITS else None


@lru_cache(maxsize=256)
def mixed(whole: str, above: str, below: str) -> Decimal | None:
    """Returns whole + above / below, as in "2 1/2"; None where the second part is no proper fraction."""
    if not 0 <= int(above) < int(below):
        return None
    return EXACT.add(Decimal(whole), _DIVIDE.divide(Decimal(above), Decimal(below)))


def shifted(value: Decimal, places: int) -> Decimal | None:
    """Returns value * 10**places without an exponent where it is whole, or None outside the limits."""
    if abs(value.adjusted() + places) > MAX_DIGITS:
        return None
    return _plain(EXACT.scaleb(value, places))


def power(base: Decimal, exponent: int) -> Decimal | None:
    """Returns base**exponent, exact for exponents from 0 on, or None outside the limits."""
    if not base:
        return None if exponent < 0 else Decimal(int(exponent == 0))
    digits = len(base.as_tuple().digits)
    if abs(exponent) * max(digits, abs(base.adjusted()) + 1) > MAX_DIGITS:
        return None
    raised = EXACT.power(base, abs(exponent))
    return _plain(raised if exponent >= 0 else _DIVIDE.divide(Decimal(1), raised))


def _plain(value: Decimal) -> Decimal:
    return EXACT.quantize(value, Decimal(1)) if value == EXACT.to_integral_value(value) else value
