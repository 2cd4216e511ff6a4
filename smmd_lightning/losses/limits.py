"""Checks of plain settings: an error names the setting, its limits and what was got."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

SMALLEST, LARGEST = 1e-6, 1e6
"""Limits of widths and temperatures: their squares, and quotients by them, stay well inside float32."""


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Checks a setting that is one of a few words.

    Raises:
        ValueError: It is none of them.
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}.")


def check_number(name: str, value: Any, least: float = 0.0, most: float = math.inf) -> None:
    """Checks that a setting is a finite number within its limits, both included.

    Raises:
        ValueError: It is not a number, not finite, or outside the limits.

    Example:
        >>> check_number("temperature", float("nan"), least=0.5)
        Traceback (most recent call last):
        ...
        ValueError: temperature must be a finite number of at least 0.5, got nan.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and least <= value <= most):
        limits = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a finite number {limits}, got {value!r}.")


def check_width(name: str, value: Any) -> None:
    """Checks a bandwidth, a temperature or another setting that something is divided by.

    Raises:
        ValueError: It is not a number from `SMALLEST` to `LARGEST`.
    """
    check_number(name, value, SMALLEST, LARGEST)
