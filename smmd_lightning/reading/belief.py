"""The range of values that holds a share of a model's belief in whole answers.

One real example::

    >>> central_interval([("5", 0.9), ("9", 0.06), ("1", 0.04)], float)
    (5.0, 9.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Value = float


def central_interval(
    answers: Sequence[tuple[str, float]], measure: Callable[[str], Value | None], cover: float = 0.9
) -> tuple[Value, Value] | None:
    """Returns the central range of values that holds a share of the probability.

    Args:
        answers: Whole answers with probabilities.
        measure: The value of an answer; None where it has none, which is left out.
        cover: The share.
    """
    known = sorted((value, mass) for text, mass in answers if mass > 0 and (value := measure(text)) is not None)
    total = sum(mass for _, mass in known)
    if total <= 0:
        return None
    tail, below = (1 - cover) / 2 * total, 0.0
    low = high = None
    for value, mass in known:
        below += mass
        if low is None and below >= tail:
            low = value
        if high is None and below >= total - tail - 1e-9:
            high = value
    assert low is not None
    return low, known[-1][0] if high is None else high
