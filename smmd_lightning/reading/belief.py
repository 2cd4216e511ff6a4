"""What a model believes of a whole answer, from what it believed of each number token that it wrote.

Unusual: one greedy answer is enough. The probability that another answer departs at a token is exact: that of the
tokens before it as written, times that of the other token. What such an answer would go on with is not asked; it is
taken to be what was written. So the spread in the leading digit is right, and that in the last ones nearly.

One real example, for "42" with some doubt about the 2::

    >>> first = {"written": "4", "share": 1.0, "values": [[4.0, 1.0]]}
    >>> second = {"written": "2", "share": 1.0, "values": [[2.0, 0.75], [3.0, 0.25]]}
    >>> alternatives("42 V", [first, second])
    [('42 V', 0.75), ('43 V', 0.25)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Value = float


def alternatives(text: str, beliefs: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    """Returns whole answers with their probabilities, the likeliest first.

    Args:
        text: The answer, as the model wrote it.
        beliefs: What `NumericRecorder.describe` says of each number token, in reading order.
    """
    found: dict[str, float] = {}
    reached, cursor = 1.0, 0
    for belief in beliefs:
        written = str(belief["written"])
        start = text.find(written, cursor)
        if start < 0:  # the text was trimmed
            break
        kept, cursor = 0.0, start + len(written)
        for value, probability in belief["values"]:
            other = _as_written(value, written)
            mass = reached * float(belief["share"]) * float(probability)
            if other == written:
                kept += mass
            else:
                answer = text[:start] + other + text[cursor:]
                found[answer] = found.get(answer, 0.0) + mass
        reached = kept
    found[text] = found.get(text, 0.0) + reached
    return sorted(((answer, round(mass, 6)) for answer, mass in found.items()), key=lambda pair: (-pair[1], pair[0]))


def interval(
    answers: Sequence[tuple[str, float]], measure: Callable[[str], Value | None], cover: float = 0.9
) -> tuple[Value, Value] | None:
    """Returns the central range of values that holds a share of the probability.

    Args:
        answers: Whole answers with probabilities.
        measure: The value of an answer; None where it has none, which is left out.
        cover: The share.

    >>> interval([("5", 0.9), ("9", 0.06), ("1", 0.04)], float)
    (5.0, 9.0)
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


def _as_written(value: float, written: str) -> str:
    """Writes a value as the token beside it is written: "07" beside "05"."""
    text = str(int(value)) if float(value).is_integer() else repr(float(value))
    return text.zfill(len(written)) if written.startswith("0") and len(written) > 1 else text
