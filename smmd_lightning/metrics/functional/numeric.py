"""Answers that are numbers: equal or not, and how far apart.

Shape legend: N answers, C columns of a row.

Unusual: values are compared as `Decimal`, so 0.1 + 0.2 is 0.3 and a tolerance of 5 % includes 95 for 100. An answer
without a number is wrong in every share. Plain means of errors leave it out (no number is its error); medians count it
as infinitely far, penalised and capped means as far off as the answer 0 would be. A truth that is no number ("c",
"12:48 PM") is compared as text and enters no error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import torch
from torch import Tensor

from smmd_lightning.answers import (
    AnswerRule,
    Decimals,
    answer_quantity,
    answer_text,
    number_in_words,
    parse_number,
    parse_quantity,
    roman_number,
)
from smmd_lightning.metrics.functional.same import ARITHMETIC, comparable, relative_error, same_words, written
from smmd_lightning.metrics.functional.summaries import mean, median
from smmd_lightning.metrics.score import Judgement, Score

COLUMNS = ("exact_match", "parse_failures", "absolute_error", "relative_error", "truth_size")
"""Columns before the one for each tolerance. Errors: NaN where undefined, infinite where nothing was parsed."""

TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1)

_SMALLEST, _LARGEST = 1e-30, 1e30
"""Sizes are kept and summed in float32, where infinity already means "nothing parsed" and 0 "the truth is 0"."""


def judge_number(
    prediction: str,
    target: str,
    *,
    numeric: bool | None = None,
    rule: AnswerRule = "marked",
    tolerances: Sequence[float] = TOLERANCES,
    decimals: Decimals = "auto",
    words: bool = False,
    roman: bool = False,
) -> Judgement:
    """Judges one answer.

    Args:
        prediction: What the model wrote.
        target: The right answer, possibly with its reasoning and an answer mark.
        numeric: Whether the truth is a number. None: if what stands after the target's mark is one as a whole.
        rule: Which of several numbers counts, see `smmd_lightning.answers`.
        tolerances: Relative tolerances, 0.05 for 5 %.
        decimals: Which sign is the decimal sign, see `smmd_lightning.answers.separators`.
        words: Whether numbers in English words count where there are no digits.
        roman: Whether Roman numerals count where there are no digits.

    Raises:
        ValueError: `numeric` is true and the target holds no number.
    """
    whole = parse_quantity(answer_text(target), decimals)
    if numeric is None:
        numeric = whole is not None or _without_digits(target, words, roman) is not None
    if not numeric:
        said, truth = answer_text(prediction), answer_text(target)
        exact = same_words(prediction, target)
        row = number_row(exact, bool(said), None, None, tolerances)
        return Judgement(Score(said or None, truth, None, exact), row)
    gold = whole.value if whole is not None else parse_number(target, rule, decimals)
    gold = _without_digits(target, words, roman) if gold is None else gold
    if gold is None:
        raise ValueError(f"The right answer must hold a number, got {target!r}.")
    quantity = answer_quantity(prediction, rule, decimals)
    if quantity is None:
        found = _without_digits(prediction, words, roman)
        parsed = None if found is None else f"{found:f}"
    else:
        found, parsed = quantity.value if whole is None else comparable(quantity, whole), written(quantity)
    row = number_row(found == gold, found is not None, found, gold, tolerances)
    error = None if found is None else row[COLUMNS.index("absolute_error")]
    truth = f"{gold:f}" if whole is None else written(whole)
    return Judgement(Score(parsed, truth, error, found == gold), row)


def number_row(
    exact: bool, parsed: bool, found: Decimal | None, gold: Decimal | None, tolerances: Sequence[float]
) -> tuple[float, ...]:
    """Returns one row with the columns `COLUMNS` and one for each tolerance."""
    start = (float(exact), float(not parsed))
    if gold is None:
        return (*start, math.nan, math.nan, math.nan, *(math.nan for _ in tolerances))
    size = min(max(float(abs(gold)), _SMALLEST), _LARGEST) if gold else 0.0
    if found is None:
        return (*start, math.inf, math.inf, size, *(0.0 for _ in tolerances))
    absolute = min(float(ARITHMETIC.subtract(found, gold).copy_abs()), _LARGEST)
    relative = relative_error(found, gold)
    within = (float(relative <= Decimal(str(tolerance))) for tolerance in tolerances)
    return (*start, absolute, min(float(relative), _LARGEST) if relative.is_finite() else math.inf, size, *within)


def _without_digits(text: str, words: bool, roman: bool) -> Decimal | None:
    found = number_in_words(text) if words else None
    if found is None and roman and (letters := roman_number(text)) is not None:
        found = Decimal(letters)
    return found


def summarise_numbers(table_NC: Tensor, tolerances: Sequence[float] = TOLERANCES) -> dict[str, Tensor]:
    """Returns the metrics of judged answers.

    Args:
        table_NC: (N, C) float, one row an answer as `number_row` gives it.
        tolerances: What the columns after `COLUMNS` stand for.

    Returns:
        `exact_match` and `parse_failures` over all answers; the others over those whose truth is a number. They are
        left out where there is none. `mean_absolute_error` and `mean_relative_error` are of the answers that hold a
        number (the latter of truths other than 0). In `penalised_mean_absolute_error` an answer without a number costs
        what the answer 0 would have cost (1 where the truth is 0); in the `capped_` means no answer costs more than
        that.
    """
    exact, failed, absolute, relative, size = table_NC[:, : len(COLUMNS)].unbind(1)
    values = {"exact_match": mean(exact), "parse_failures": mean(failed)}
    known_N = ~absolute.isnan()
    if known_N.any():
        absolute, relative, size = absolute[known_N], relative[known_N], size[known_N]
        penalty = torch.where(size == 0, 1.0, size)
        values["mean_absolute_error"] = mean(absolute[absolute.isfinite()])
        values["median_absolute_error"] = median(absolute)
        values["penalised_mean_absolute_error"] = mean(torch.where(absolute.isfinite(), absolute, penalty))
        values["capped_mean_absolute_error"] = mean(torch.minimum(absolute, penalty))
        values["mean_relative_error"] = mean(relative[relative.isfinite() & (size > 0)])
        values["median_relative_error"] = median(relative)
        values["capped_mean_relative_error"] = mean(relative.clamp(max=1.0))
    for column, tolerance in enumerate(tolerances, start=len(COLUMNS)):
        if known_N.any():
            values[f"within_{100 * tolerance:g}_percent"] = mean(table_NC[known_N, column])
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
