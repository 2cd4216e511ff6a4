"""Answers about charts: relaxed accuracy, as published and as a person would judge.

Shape legend: N answers, C columns of a row.

Unusual: two rules side by side. `official` is ChartQA's published rule bit for bit, oddities included ("2%" is 0.02 and
so not 2; a truth of 0 is compared as text; 2008 passes for the year 2010). `robust` reads units, commas, currency,
scales and lists, and wants years exactly. The 5 % are of the truth: truth and prediction are not interchangeable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

import torch
from torch import Tensor

from smmd_lightning.answers import Decimals, Quantity, answer_quantity, answer_text, parse_quantity
from smmd_lightning.metrics.functional import numeric
from smmd_lightning.metrics.functional.numeric import number_row, summarise_numbers
from smmd_lightning.metrics.functional.same import comparable, relative_error, same_words, written
from smmd_lightning.metrics.functional.summaries import mean
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("relaxed_accuracy_official", "relaxed_accuracy_robust")
"""Columns before those of `functional.numeric`."""

TOLERANCE = 0.05
YEARS = range(1800, 2101)
"""A truth that is written as one of these, four bare digits, is a year and must be met exactly under `robust`."""

_SEPARATOR = re.compile(r"\s*(?:,(?!\d{3}(?!\d))|;|\n|\band\b)\s*")
_SEPARATOR_BESIDE_COMMAS = re.compile(r"\s*(?:,(?!\d)|;|\n|\band\b)\s*")


def relaxed_correct_official(prediction: str, target: str, max_relative_change: float = TOLERANCE) -> bool:
    """Whether the answer passes ChartQA's published rule.

    Where `float` reads both texts, percentages divided by 100, and the truth is not 0: they must be at most
    `max_relative_change` of the truth apart. Otherwise the texts must be equal but for case. Masry et al. 2022 (arXiv
    2203.10244), end of section 5.1, in the form of pix2struct's evaluation.

    >>> [relaxed_correct_official(*pair) for pair in (("95.2", "100"), ("94.9", "100"), ("2%", "2"), ("YES", "Yes"))]
    [True, False, False, True]
    """
    value, truth = _published_float(prediction), _published_float(target)
    if value is not None and truth:
        return abs(value - truth) / abs(truth) <= max_relative_change
    return prediction.lower() == target.lower()


def relaxed_correct_robust(
    prediction: str, target: str, tolerance: float = TOLERANCE, decimals: Decimals = "auto"
) -> bool:
    """Whether a person would accept the answer.

    A list must have as many items as the truth, each acceptable, in the same order. A number may be off by
    `tolerance` of the truth, a year not; a percentage may be written as a share ("60%", "0.6") or without its sign.
    Anything else is compared as text ("65+", "18/19"), yes and no by the first word.

    >>> relaxed_correct_robust("$1,020", "1000"), relaxed_correct_robust("2008", "2010")
    (True, False)
    >>> relaxed_correct_robust("The answer is 2010 and 2014.", "[2010, 2014]")
    True
    """
    if target.strip().startswith("["):
        items, truths = _items(answer_text(prediction), decimals), _items(target, decimals)
        return len(items) == len(truths) and all(
            relaxed_correct_robust(item, truth, tolerance, decimals) for item, truth in zip(items, truths, strict=True)
        )
    gold = _label_number(target, decimals)
    if gold is None:
        return same_words(prediction, target)
    found = _answer_number(prediction, decimals)
    if found is None:
        return False
    if _is_year(gold):
        return found.value == gold.value
    return relative_error(comparable(found, gold), gold.value) <= Decimal(str(tolerance))


def judge_chart(
    prediction: str,
    target: str,
    tolerances: Sequence[float] = numeric.TOLERANCES,
    decimals: Decimals = "auto",
) -> Judgement:
    """Judges one answer; `exact_match` is the robust rule without tolerance."""
    gold, found = _label_number(target, decimals), _answer_number(prediction, decimals)
    exact = relaxed_correct_robust(prediction, target, 0, decimals)
    relaxed = (
        float(relaxed_correct_official(prediction, target)),
        float(relaxed_correct_robust(prediction, target, decimals=decimals)),
    )
    if gold is None:
        said = answer_text(prediction)
        row = number_row(exact, bool(said), None, None, tolerances)
        return Judgement(Score(said or None, target, None, exact), relaxed + row)
    value = None if found is None else comparable(found, gold)
    row = number_row(exact, found is not None, value, gold.value, tolerances)
    error = row[numeric.COLUMNS.index("relative_error")] if value is not None and gold.value else None
    return Judgement(Score(None if found is None else written(found), written(gold), error, exact), relaxed + row)


def summarise_charts(table_NC: Tensor, tolerances: Sequence[float] = numeric.TOLERANCES) -> dict[str, Tensor]:
    """Returns the metrics of judged answers.

    Args:
        table_NC: (N, C) float, one row per answer: `COLUMNS`, then those of `functional.numeric`.
        tolerances: What the last columns stand for.
    """
    relaxed = {name: mean(table_NC[:, column]) for column, name in enumerate(COLUMNS)}
    return relaxed | summarise_numbers(table_NC[:, len(COLUMNS) :], tolerances)


def chart_answers(
    predictions: Sequence[str], targets: Sequence[str], *, tolerances: Sequence[float] = numeric.TOLERANCES
) -> dict[str, Tensor]:
    """Returns the metrics of N answers; the functional twin of `ChartMetrics`.

    >>> values = chart_answers(["2%", "95.2", "2008"], ["2", "100", "2010"])
    >>> [round(values[f"relaxed_accuracy_{rule}"].item(), 3) for rule in ("official", "robust")]
    [0.667, 0.667]
    """
    rows = [judge_chart(*pair, tolerances).row for pair in zip(predictions, targets, strict=True)]
    width = len(COLUMNS) + len(numeric.COLUMNS) + len(tolerances)
    return summarise_charts(torch.tensor(rows, dtype=torch.float32).reshape(-1, width), tolerances)


def _published_float(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return None


def _label_number(target: str, decimals: Decimals) -> Quantity | None:
    # "18/19" is a season, "2.72 / 2720" a pair: what has a slash is no number on a chart.
    return None if "/" in target else parse_quantity(target, decimals)


def _answer_number(prediction: str, decimals: Decimals) -> Quantity | None:
    return parse_quantity(answer_text(prediction), decimals) or answer_quantity(prediction, decimals=decimals)


def _is_year(gold: Quantity) -> bool:
    bare = len(gold.written) == 4 == gold.end - gold.start and gold.written.isdigit()
    return bare and int(gold.written) in YEARS


def _items(text: str, decimals: Decimals) -> list[str]:
    separator = _SEPARATOR_BESIDE_COMMAS if decimals == "comma" else _SEPARATOR
    return [item.strip(" '\"") for item in separator.split(text.strip(" []().\n")) if item]
