"""What plots need of each final run: its learning curve, and how far off each answer was.

One real example::

    trace = read_trace(result, out, "exact_match")
    trace.curve         # ((499, 0.61), (999, 0.74))
    trace.errors        # (0.0, 0.08, inf), relative to the truth; for clocks in minutes
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smmd_lightning.compare.collecting import Result
from smmd_lightning.metrics import ToleranceCurve, metrics_for
from smmd_lightning.metrics.facts import RELATIVE_CURVE
from smmd_lightning.report.run import Curve, read_run


@dataclass(frozen=True)
class Trace:
    """The course of a run; whatever was not found is empty.

    Attributes:
        loss: Name of the loss.
        curve: (step, value) pairs of the validation metric.
        errors: One per numeric answer: minutes for clocks, else relative to the truth; infinite without a number.
        axis: The task's tolerances, in the unit of the errors.
    """

    loss: str
    curve: Curve
    errors: tuple[float, ...]
    axis: ToleranceCurve = RELATIVE_CURVE

    @property
    def tolerances(self) -> tuple[float, ...]:
        """A few tolerances, in the unit of the errors."""
        return tuple(self.axis.few)

    def accuracies(self) -> list[float]:
        """Share of answers within each tolerance."""
        return [
            sum(1 for error in self.errors if error <= tolerance * (1 + 1e-9)) / len(self.errors)
            for tolerance in self.tolerances
        ]


def read_trace(result: Result, out: Path, metric: str) -> Trace:
    """Reads the TensorBoard log and the prediction file of a run."""
    try:
        run = read_run(out / result.run.folder)
    except ValueError:  # a program of one's own need not leave either
        return Trace(result.run.loss, (), ())
    task = str(run.answers[0].get("task")) if run.answers else ""
    axis = metrics_for(task).curve or RELATIVE_CURVE
    errors = tuple(error for row in run.answers if (error := answer_error(row)) is not None)
    return Trace(result.run.loss, run.curves.get(f"val/{metric}", ()), errors, axis)


def answer_error(row: Mapping[str, Any]) -> float | None:
    """How far off an answer was, in its task's unit, else relative to the truth; None where the truth is no number.

    >>> answer_error({"truth": "50", "parsed": "40", "error": 10.0, "error_unit": "absolute"})
    0.2
    >>> answer_error({"truth": "03:05", "parsed": None, "error": None, "error_unit": "minutes"})
    inf
    """
    error = row.get("error")
    if row.get("error_unit") not in ("absolute", "relative"):
        return math.inf if error is None else float(error)
    try:
        truth = float(str(row.get("truth")).rstrip("%").replace(",", ""))
    except ValueError:
        return None
    if row.get("parsed") is None:
        return math.inf
    if row.get("correct"):
        return 0.0
    if error is None or not truth:
        return math.inf
    return float(error) if row.get("error_unit") == "relative" else float(error) / abs(truth)


def by_loss(traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    """Sorts traces by their loss."""
    found: dict[str, list[Trace]] = {}
    for trace in traces:
        found.setdefault(trace.loss, []).append(trace)
    return found


def envelope(curves: Iterable[Curve]) -> list[tuple[float, float, float, float]]:
    """Mean, least and greatest of several curves: (x, mean, least, greatest), by x; of finite values only.

    >>> envelope([((1, 0.2), (2, 0.4)), ((1, 0.4),)])
    [(1, 0.30000000000000004, 0.2, 0.4), (2, 0.4, 0.4, 0.4)]
    """
    values: dict[float, list[float]] = {}
    for curve in curves:
        for x, value in curve:
            if math.isfinite(value):
                values.setdefault(x, []).append(value)
    return [(x, sum(found) / len(found), min(found), max(found)) for x, found in sorted(values.items())]
