"""Answers that are numbers: equal or not, and how far apart.

Shape legend: N answers, C columns of a row.

Unusual: values are compared as `Decimal`, so 0.1 + 0.2 is 0.3 and a tolerance of 5 % includes 95 for 100. An answer
without a number is wrong in every share; means of errors leave it out (no number is its error), medians count it as
infinitely far. A truth that is no number ("c", "12:48 PM") is compared as text and enters no error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal

import torch
from torch import Tensor

from smmd_lightning.answers import AnswerRule, answer_text, parse_number, parse_quantity, same_text
from smmd_lightning.metrics.functional.summaries import mean, median
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("exact_match", "parse_failures", "absolute_error", "relative_error")
"""Columns before the one for each tolerance. Errors: NaN where undefined, infinite where nothing was parsed."""

TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1)

ARITHMETIC = Context(prec=50, Emax=10_000, Emin=-10_000, traps=[])
_LARGEST = 1e30  # errors are kept and summed in float32, where infinity already means "nothing parsed"


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


def judge_number(
    prediction: str,
    target: str,
    *,
    numeric: bool | None = None,
    rule: AnswerRule = "marked",
    tolerances: Sequence[float] = TOLERANCES,
) -> Judgement:
    """Judges one answer.

    Args:
        prediction: What the model wrote.
        target: The right answer, possibly with its reasoning and an answer mark.
        numeric: Whether the truth is a number. None: if what stands after the target's mark is one as a whole.
        rule: Which of several numbers counts, see `smmd_lightning.answers`.
        tolerances: Relative tolerances, 0.05 for 5 %.

    Raises:
        ValueError: `numeric` is true and the target holds no number.
    """
    if numeric is None:
        numeric = parse_quantity(answer_text(target)) is not None
    if not numeric:
        said, truth = answer_text(prediction), answer_text(target)
        exact = same_text(said, truth)
        row = number_row(exact, bool(said), None, None, tolerances)
        return Judgement(Score(said or None, truth, None, exact), row)
    gold, found = parse_number(target, rule), parse_number(prediction, rule)
    if gold is None:
        raise ValueError(f"The right answer must hold a number, got {target!r}.")
    row = number_row(found == gold, found is not None, found, gold, tolerances)
    error = None if found is None else row[COLUMNS.index("absolute_error")]
    return Judgement(Score(None if found is None else f"{found:f}", f"{gold:f}", error, found == gold), row)


def number_row(
    exact: bool, parsed: bool, found: Decimal | None, gold: Decimal | None, tolerances: Sequence[float]
) -> tuple[float, ...]:
    """Returns one row with the columns `COLUMNS` and one for each tolerance."""
    start = (float(exact), float(not parsed))
    if gold is None:
        return (*start, math.nan, math.nan, *(math.nan for _ in tolerances))
    if found is None:
        return (*start, math.inf, math.inf if gold else math.nan, *(0.0 for _ in tolerances))
    absolute = min(float(ARITHMETIC.subtract(found, gold).copy_abs()), _LARGEST)
    relative = relative_error(found, gold)
    within = (float(relative <= Decimal(str(tolerance))) for tolerance in tolerances)
    return (*start, absolute, min(float(relative), _LARGEST) if gold else math.nan, *within)


def summarise_numbers(table_NC: Tensor, tolerances: Sequence[float] = TOLERANCES) -> dict[str, Tensor]:
    """Returns the metrics of judged answers.

    Args:
        table_NC: (N, C) float, one row an answer as `number_row` gives it.
        tolerances: What the columns after `COLUMNS` stand for.

    Returns:
        `exact_match` and `parse_failures` over all answers; the others over those whose truth is a number (the relative
        errors: a number other than 0). They are left out where there is none.
    """
    exact, failed, absolute, relative = table_NC[:, : len(COLUMNS)].unbind(1)
    values = {"exact_match": mean(exact), "parse_failures": mean(failed)}
    for name, error in (("absolute", absolute), ("relative", relative)):
        error = error[~error.isnan()]
        if len(error):
            values[f"mean_{name}_error"] = mean(error[error.isfinite()])
            values[f"median_{name}_error"] = median(error)
    numeric_N = ~absolute.isnan()
    for column, tolerance in enumerate(tolerances, start=len(COLUMNS)):
        if numeric_N.any():
            values[f"within_{100 * tolerance:g}_percent"] = mean(table_NC[numeric_N, column])
    return values


def number_answers(
    predictions: Sequence[str],
    targets: Sequence[str],
    *,
    rule: AnswerRule = "marked",
    tolerances: Sequence[float] = TOLERANCES,
) -> dict[str, Tensor]:
    """Returns the metrics of N answers; the functional twin of `NumberMetrics`.

    >>> values = number_answers(["It costs $29.00", "104", "I don't know"], ["29", "#### 100", "7"])
    >>> [round(values[name].item(), 3) for name in ("exact_match", "within_5_percent", "mean_absolute_error")]
    [0.333, 0.667, 2.0]
    """
    pairs = zip(predictions, targets, strict=True)
    rows = [judge_number(*pair, rule=rule, tolerances=tolerances).row for pair in pairs]
    table_NC = torch.tensor(rows, dtype=torch.float32).reshape(-1, len(COLUMNS) + len(tolerances))
    return summarise_numbers(table_NC, tolerances)
