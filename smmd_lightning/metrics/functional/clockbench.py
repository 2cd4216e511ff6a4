"""ClockBench's rule (clockbench.ai): an answer in JSON, whose claim that the clock is valid counts first.

Unusual: bit for bit as its grading script, except that an answer without any JSON is wrong here instead of ending the
grading. Of an invalid clock nothing but `"valid": false` is asked. A truth may be a number, a range [low, high], a
choice among several numbers, or words in any case.

One real example::

    >>> truth = {"valid": True, "hours": 1, "minutes": [4, 5], "seconds": 45}
    >>> judge_clockbench('Sure! {"valid": true, "hours": "1", "minutes": 5, "seconds": 45}', truth).score.correct
    True
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("accuracy", "accuracy_valid", "accuracy_invalid", "said_invalid", "parse_failures")
FIELDS = ("hours", "minutes", "seconds", "date", "month", "weekday")

_FENCE = re.compile(r"\A```(?:json|javascript|js)?\s*|\s*```\Z", re.IGNORECASE)
_LAST_COMMA = re.compile(r",(?=\s*[}\]])")
_BARE_KEY = re.compile(r"(?<=[{,])\s*([A-Za-z_]\w*)\s*:")
_WORDS = {"true": "True", "false": "False", "null": "None"}
_WORD = re.compile(r"\b(?:true|false|null)\b", re.IGNORECASE)
_WHOLE = re.compile(r"-?\d{1,400}", re.ASCII)
_MOST_LETTERS = 100_000


def read_json(text: str) -> dict[str, Any] | None:
    r"""Returns the JSON object in an answer, forgiving code fences, last commas, bare keys and Python's words.

    >>> read_json("```json\n{valid: True, 'hours': 3,}\n```")
    {'valid': True, 'hours': 3}
    """
    text = _FENCE.sub("", text.strip()[:_MOST_LETTERS]) if text.strip().startswith("```") else text[:_MOST_LETTERS]
    start, end = text.find("{"), text.rfind("}") + 1
    if start < 0 or end <= start:
        return None
    strict = text[start:end]
    mended = _BARE_KEY.sub(r'"\1":', _LAST_COMMA.sub("", strict))
    python = _WORD.sub(lambda word: _WORDS[word[0].lower()], mended)
    for candidate, reader in ((strict, json.loads), (mended, json.loads), (python, ast.literal_eval)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = reader(candidate)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def matches(expected: Any, got: Any) -> bool:
    """Whether one field of an answer is right."""
    if isinstance(expected, str):
        return isinstance(got, str) and expected.strip().casefold() == got.strip().casefold()
    if isinstance(expected, bool) or expected is None:
        return bool(expected == got)
    if isinstance(expected, (int, float)) and math.isfinite(expected):
        return _whole(got) == int(expected)
    if isinstance(expected, list) and expected:
        if _is_range(expected):
            value = _whole(got)
            return value is not None and int(expected[0]) <= value <= int(expected[1])
        return _whole(got) in {_whole(choice) for choice in expected} - {None}
    if isinstance(expected, dict) and expected:
        single = {_whole(choice) for choice in expected.values()} - {None}
        ranges = [choice for choice in expected.values() if isinstance(choice, list) and _is_range(choice)]
        if single or ranges:
            return _whole(got) in single or any(matches(choice, got) for choice in ranges)
    return bool(expected == got)


def judge_clockbench(prediction: str, truth: Mapping[str, Any]) -> Judgement:
    """Judges one answer.

    Args:
        prediction: What the model wrote.
        truth: What is right: `valid`, and of a valid clock `hours`, `minutes`, `seconds` and where they were asked
            `date`, `month`, `weekday`.

    Returns:
        The score, and a row with the columns `COLUMNS`; NaN in the column of valid clocks for an invalid one and the
        other way round.
    """
    said = read_json(prediction)
    valid = truth.get("valid")
    if said is None or valid is not said.get("valid"):
        right = False
    else:
        right = valid is False or all(matches(truth.get(name), said.get(name)) for name in FIELDS if name in truth)
    row = (
        float(right),
        math.nan if valid is False else float(right),
        float(right) if valid is False else math.nan,
        float(said is not None and said.get("valid") is False),
        float(said is None),
    )
    parsed = None if said is None else json.dumps(said, default=str)
    return Judgement(Score(parsed, json.dumps(dict(truth)), None, right), row)


def _is_range(values: list[Any]) -> bool:
    return len(values) == 2 and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )


def _whole(value: Any) -> int | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value.strip())
    return None
