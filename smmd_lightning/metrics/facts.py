"""What is known about a metric beside its value: which way is better, its unit, its title, its tolerance curve.

Unusual: nothing is guessed from a name. A metrics class declares each of its metrics; `registry.metric_facts` finds
the declaration for a name as it is logged ("val/clock/exact_match").

One real example::

    >>> declared = {"within_*_percent": MetricFacts("max", "share", "Within {} %")}
    >>> declared_facts(declared, "within_5_percent")
    MetricFacts(direction='max', unit='share', title='Within 5 %')
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Direction = Literal["max", "min"]


@dataclass(frozen=True)
class MetricFacts:
    """What is known about one metric.

    Attributes:
        direction: "max" where more is better, "min" where less is.
        unit: "share" for a mean of zeros and ones, shown as a percentage; "relative" for a part of the truth, shown as
            a percentage; else what stands behind the number ("minutes"), empty for none.
        title: Name for people. Empty: the metric's own name in words.
    """

    direction: Direction = "max"
    unit: str = "share"
    title: str = ""

    def shown(self, value: float) -> str:
        """Writes a value with its unit.

        >>> MetricFacts().shown(0.931), MetricFacts("min", "minutes").shown(2.5), MetricFacts("min", "").shown(1e20)
        ('93.1 %', '2.5 minutes', '1e+20')
        """
        if not math.isfinite(value):
            return "undefined" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
        if self.unit == "share":
            return f"{100 * value:.1f} %"
        if self.unit == "relative" and abs(value) < 1e6:
            return f"{100 * value:.3g} %"
        unit = "" if self.unit == "relative" else self.unit
        return f"{value:.4g} {unit}".strip()


@dataclass(frozen=True)
class ToleranceCurve:
    """Axis of a task's plot "share of right answers by tolerance".

    Attributes:
        title: Title of the plot.
        label: Name of the axis.
        tolerances: The tolerances, in the unit of `AnswerMetrics.distances`, rising.
        few: A handful of tolerances, for plots with one place for each.
        percent: Whether a tolerance is a part of one, written as a percentage.
        ticks: Places and texts on the axis; empty: chosen by the plot.
        log: Whether the axis is logarithmic; all tolerances are above 0 then.
    """

    title: str
    label: str
    tolerances: Sequence[float]
    few: Sequence[float]
    percent: bool = False
    ticks: Sequence[tuple[float, str]] = ()
    log: bool = False

    def text(self, tolerance: float) -> str:
        """Writes a tolerance."""
        return f"{100 * tolerance:g} %" if self.percent else f"{tolerance:g}"


RELATIVE_CURVE = ToleranceCurve(
    "Accuracy by relative tolerance",
    "part of the truth that is tolerated",
    tuple(0.001 * 10 ** (step / 8) for step in range(25)),
    (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    True,
    ((0.001, "0.1 %"), (0.01, "1 %"), (0.05, "5 %"), (0.2, "20 %"), (1.0, "100 %")),
    log=True,
)

LOSSES: Mapping[str, MetricFacts] = {
    "loss": MetricFacts("min", "", "Loss"),
    "ce": MetricFacts("min", "", "Cross-entropy"),
    "numeric": MetricFacts("min", "", "Numeric loss"),
}
"""The losses that every run logs, without their stage."""


def declared_facts(declared: Mapping[str, MetricFacts], name: str) -> MetricFacts | None:
    """Returns the declaration that fits a metric's name, its title filled in; None where there is none.

    Args:
        declared: Facts by name. A `*` in a name stands for a number, and `{}` in its title for the same number.
        name: A metric's own name, without stage, task and kind.
    """
    for pattern, facts in declared.items():
        found = re.fullmatch(re.escape(pattern).replace(r"\*", r"([\d.]+(?:e[-+]?\d+)?)"), name)
        if found:
            title = facts.title or (name[:1].upper() + name[1:]).replace("_", " ")
            return replace(facts, title=title.format(*found.groups()))
    return None
