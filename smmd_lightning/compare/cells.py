"""Cells of the report's tables: a mean with its interval, a comparison.

One real example: `interval(mean_interval([0.61, 0.64, 0.62]))` is "0.6233 [0.5854, 0.6613]".
"""

from __future__ import annotations

import math

from smmd_lightning.compare.inference import Comparison
from smmd_lightning.report.judged import Interval


def interval(found: Interval, signed: bool = False) -> str:
    """Writes a mean with its interval.

    >>> interval(Interval(0.5, 0.25, 0.75)), interval(Interval(0.1, float("-inf"), float("inf")), signed=True)
    ('0.5000 [0.2500, 0.7500]', '+0.1000')
    """
    form = "+.4f" if signed else ".4f"
    value = format(found.value, form)
    return (
        value
        if math.isinf(found.low) or math.isnan(found.low)
        else f"{value} [{found.low:{form}}, {found.high:{form}}]"
    )


def comparison_cells(found: Comparison | None) -> list[str]:
    """The cells of a comparison in the table of a task; dashes for the baseline."""
    if found is None:
        return ["–"] * 5
    return [
        interval(found.bootstrap, signed=True),
        interval(found.student, signed=True),
        f"{found.wins} : {found.losses}",
        f"{found.sign_p:.3g}",
        found.verdict,
    ]
