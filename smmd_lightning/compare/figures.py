"""The plots of a comparison, as PNG.

Unusual: curves of ten losses in one frame cannot be told apart, so each loss has a frame of its own with the baseline
in grey behind it. Bands go from the worst seed to the best.

One real example: `final_metric(...)` gives one row per loss, a dot per seed, and Student's interval around the mean.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smmd_lightning.compare.traces import Trace, envelope
from smmd_lightning.metrics.facts import RELATIVE_CURVE
from smmd_lightning.report.judged import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR, GREY = "#0072b2", "#8a8f98"
COLUMNS = 4
Points = Sequence[tuple[float, float, float, float]]
"""(x, mean, least, greatest)."""


@dataclass(frozen=True)
class Bar:
    """One loss in the plot of the final metric.

    Attributes:
        label: How the loss is called.
        values: The metric, one per seed.
        interval: Mean with its interval.
    """

    label: str
    values: Sequence[float]
    interval: Interval


def available() -> bool:
    """Whether matplotlib is installed; it comes with `smmd_lightning[plots]`."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def final_metric(metric: str, bars: Sequence[Bar]) -> bytes:
    """One row per loss, the baseline first; values that are not finite are counted in the label."""
    figure = _figure(6.4, 0.8 + 0.34 * len(bars))
    axes = figure.subplots()
    labels = []
    for place, bar in enumerate(bars):
        colour = GREY if place == 0 else COLOUR
        finite = [value for value in bar.values if math.isfinite(value)]
        missing = len(bar.values) - len(finite)
        labels.append(bar.label + (f"\n({missing} of {len(bar.values)} not finite)" if missing else ""))
        axes.plot(finite, [place] * len(finite), "o", color=colour, alpha=0.35, markersize=4, zorder=2)
        if len(bar.values) > 1 and math.isfinite(bar.interval.high):
            axes.hlines(place, bar.interval.low, bar.interval.high, color=colour, linewidth=2, zorder=3)
        if math.isfinite(bar.interval.value):
            axes.plot([bar.interval.value], [place], "D", color=colour, markersize=5, zorder=4)
    if math.isfinite(bars[0].interval.value):
        axes.axvline(bars[0].interval.value, color=GREY, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(bars)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"{metric}, test")
    return _png(figure)


def curves_of_losses(metric: str, traces: Mapping[str, Sequence[Trace]], labels: Mapping[str, str]) -> bytes | None:
    """The validation metric over the steps; the first loss is the baseline. None where nothing was logged."""
    points = {loss: envelope(trace.curve for trace in found) for loss, found in traces.items()}
    return _frames({labels[loss]: found for loss, found in points.items() if found}, "step", f"{metric}, validation")


def accuracy_by_tolerance(traces: Mapping[str, Sequence[Trace]], labels: Mapping[str, str]) -> bytes | None:
    """Share of answers within a tolerance; the first loss is the baseline. None without any numeric answer."""
    points, axis = {}, RELATIVE_CURVE
    for loss, found in traces.items():
        with_answers = [trace for trace in found if trace.errors]
        if with_answers:
            axis = with_answers[0].axis
            curves = [tuple(enumerate(trace.accuracies())) for trace in with_answers]
            points[labels[loss]] = envelope(curves)
    texts = [axis.text(tolerance) for tolerance in axis.few]
    return _frames(points, axis.label, "share of answers, test", texts)


def weight_sensitivity(metric: str, points: Mapping[str, Points], chosen: Mapping[str, float | None]) -> bytes | None:
    """The validation metric over the loss's weight, all losses in one frame; a ring marks the weight chosen."""
    if not points:
        return None
    figure = _figure(6.4, 4.2)
    axes = figure.subplots()
    markers = "osv^D<>ph*X"
    for place, (label, found) in enumerate(points.items()):
        xs, means, *_ = zip(*found, strict=True)
        (line,) = axes.plot(xs, means, marker=markers[place % len(markers)], markersize=4, label=label, linewidth=1.3)
        for x, mean in zip(xs, means, strict=True):
            if x == chosen.get(label):
                axes.plot([x], [mean], "o", markersize=11, fillstyle="none", color=line.get_color())
    axes.set_xscale("log")
    weights = sorted({x for found in points.values() for x, *_ in found})
    axes.set_xticks(weights, [f"{weight:g}" for weight in weights])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("weight of the numeric loss")
    axes.set_ylabel(f"{metric}, validation")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _png(figure)


def setting_sensitivity(metric: str, setting: str, texts: Sequence[str], points: Mapping[str, Points]) -> bytes | None:
    """The validation metric over the values of a setting, one frame per task."""
    return _frames(points, setting, f"{metric}, validation", texts, baseline=False)


def _frames(
    points: Mapping[str, Points], x: str, y: str, ticks: Sequence[str] | None = None, baseline: bool = True
) -> bytes | None:
    """Draws a frame for each name; with `baseline`, the first is drawn in grey behind all others."""
    if not points:
        return None
    names = list(points)
    behind = names[0] if baseline else None
    shown = [name for name in names if name != behind] or names
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = _figure(max(2.5 * columns, 4.2), 2.1 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place >= len(shown):
            axes.set_visible(False)
            continue
        if behind is not None:
            _band(axes, points[behind], GREY)
        if shown[place] != behind:
            _band(axes, points[shown[place]], COLOUR)
        axes.set_title(shown[place], fontsize=9)
        axes.tick_params(labelsize=7, labelbottom=place + columns >= len(shown))
        if ticks:
            axes.set_xticks(range(len(ticks)), ticks, rotation=60)
    figure.supxlabel(x, fontsize=8)
    figure.supylabel(y, fontsize=8)
    if behind is not None:
        figure.suptitle(f"grey: {behind}", fontsize=8, color=GREY)
    return _png(figure)


def _band(axes: Axes, points: Points, colour: str) -> None:
    xs, means, least, greatest = zip(*points, strict=True)
    axes.fill_between(xs, least, greatest, color=colour, alpha=0.2, linewidth=0)
    axes.plot(xs, means, color=colour, linewidth=1.4, marker=".", markersize=4)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure  # not pyplot, which would look for a display

    return Figure(figsize=(width, height), dpi=130, layout="constrained")


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    nothing: dict[str, Any] = {"Software": None}  # so that the same table gives the same file
    figure.savefig(buffer, format="png", metadata=nothing)
    return buffer.getvalue()
