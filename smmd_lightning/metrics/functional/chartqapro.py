"""ChartQAPro's rule (arXiv 2504.05506): relaxed accuracy by element of a list, years exact, words by ANLS.

Unusual: two numbers side by side. `accuracy` is what the published script computes, bit for bit, oddities included: a
list without quotes joins the words of an element, a truth of 0 must be met exactly, and options and facts are judged
like any other answer, because the script does not hand on that they must be exact. `accuracy_as_described` judges them
exactly, as the paper says.

One real example::

    >>> [chartqapro_score(*pair, years=["NO"]) for pair in (("95.2%", "100"), ("[1, 3]", "[1, 2]"), ("2008", "2010"))]
    [1.0, 0.5, 1.0]
    >>> chartqapro_score("2008", "2010", years=["YES"])
    0.0
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import Any

from smmd_lightning.metrics.functional.anls import anls
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("accuracy", "accuracy_as_described")
TOLERANCE = 0.05
EXACT_TYPES = ("Fact Checking", "Multi Choice")
"""Types of questions whose answers must be exact, as the paper says."""

_MOST_LETTERS = 10_000
_WORD = re.compile(r"(?<!['\w])\w['\w]*")
_LIST = re.compile(r"\[(.*)\]")


def chartqapro_score(
    prediction: str, target: str, years: Sequence[str] = ("NO",), exact: bool = False, tolerance: float = TOLERANCE
) -> float:
    """Returns the share of the answer's elements that are right.

    Args:
        prediction: What the model wrote.
        target: The right answer; "[a, b]" for a list.
        years: For each element "YES" where it is a year and must be met exactly; one value goes for all.
        exact: Whether every element must be met exactly.
        tolerance: Relative tolerance of numbers.

    Raises:
        ValueError: `years` is empty.
    """
    if not years:
        raise ValueError('years needs at least one "YES" or "NO", got none')
    prediction, target = (text.strip(".").strip("\n") for text in (prediction, target))
    truths = _elements(_quoted(target)) or [target]
    said = _elements(prediction) or [prediction]
    flags = list(years) * (len(truths) if len(years) < len(truths) else 1)
    scores = [
        _exact(item, truth) if exact or flag.upper() == "YES" else _relaxed(item, truth, tolerance)
        for item, truth, flag in zip(said, truths, flags, strict=False)
    ]
    return sum(scores) / max(len(said), len(truths))


def judge_chartqapro(prediction: str, target: str, years: Sequence[str], question_type: str) -> Judgement:
    """Judges one answer; of a conversation the last turn's.

    Returns:
        The score, and a row with the columns `COLUMNS`.
    """
    flags = list(years)[-1:] if question_type == "Conversational" else years
    script = chartqapro_score(prediction, target, flags)
    described = chartqapro_score(prediction, target, flags, exact=True) if question_type in EXACT_TYPES else script
    return Judgement(Score(prediction.strip() or None, target, None, script == 1), (script, described))


def _exact(said: str, truth: str) -> float:
    return float(said.strip().lower() == truth.strip().lower())


def _relaxed(said: str, truth: str, tolerance: float) -> float:
    said, truth = (text.strip().strip("%").strip() for text in (said, truth))
    value, gold = _float(said), _float(truth)
    if value is None or gold is None:
        return anls(said.lower(), truth.lower())
    if gold == 0:
        return float(value == 0)
    return float(abs(value - gold) / abs(gold) <= tolerance)


def _float(text: str) -> float | None:
    try:
        return float(text.strip().strip("%"))
    except ValueError:
        return None


def _quoted(target: str) -> str:
    """Puts quotes around the words of a list; the target as it is where that makes no list of Python."""
    found = _LIST.fullmatch(target.strip())
    if found is None:
        return target
    quoted = f"[{_WORD.sub(lambda word: repr(word[0]) if chr(39) not in word[0] else _apostrophe(word[0]), found[1])}]"
    return target if _literal(quoted) is None else quoted


def _apostrophe(word: str) -> str:
    return f"'{word}'"


def _elements(text: str) -> list[str]:
    found = _literal(text)
    return [str(item).strip(" '") for item in found] if isinstance(found, list) else []


def _literal(text: str) -> Any:
    if len(text) > _MOST_LETTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
