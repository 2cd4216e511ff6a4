"""Learning curves: cross-entropy, numeric loss, the watched metric, the learning rate."""

from __future__ import annotations

import math

from smmd_lightning.metrics.registry import metric_facts
from smmd_lightning.report.headline import title
from smmd_lightning.report.run import Curve, Run
from smmd_lightning.report.svg import Axis, Plot

MOST_POINTS = 240
"""A longer curve is drawn as means of neighbours."""


def learning_curves(run: Run) -> list[str]:
    """Cross-entropy, numeric loss, the watched metric and the learning rate, as far as they were logged."""
    plots = [
        _curves(name, label, {"train": run.curves.get(f"train/{tag}"), "val": run.curves.get(f"val/{tag}")}, loss=True)
        for name, label, tag in (
            ("Cross-entropy", "nats per token", "ce"),
            ("Numeric loss", "a numeric token", "numeric"),
        )
    ]
    watch = str(run.setting("model.watch") or "exact_match")
    if not _is_share(watch):
        plots.append(_curves(f"{title(watch)} of answers", "validation", {"": run.curves.get(f"val/{watch}")}))
        watch = "exact_match"
    shares = {name: run.curves.get(f"val/{name}") for name in dict.fromkeys((watch, "exact_match"))}
    shares = {title(name): curve for name, curve in shares.items()}
    plots.append(_curves("Share of good answers", "validation", shares, share=True))
    rates = {tag.removeprefix("lr-"): curve for tag, curve in run.curves.items() if tag.startswith("lr-")}
    plots.append(_curves("Learning rate", "", dict(list(rates.items())[:3])))
    return [plot for plot in plots if plot]


def _is_share(name: str) -> bool:
    try:
        return metric_facts(name).unit == "share"
    except ValueError:
        return False


def thinned(curve: Curve, most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most `most` points, each the mean of neighbours; steps that are not finite are left out."""
    known = [(step, value) for step, value in curve if math.isfinite(value)]
    size = math.ceil(len(known) / most) if known else 1
    parts = [known[start : start + size] for start in range(0, len(known), size)]
    return [(sum(step for step, _ in part) / len(part), sum(v for _, v in part) / len(part)) for part in parts]


def _curves(name: str, label: str, curves: dict[str, Curve | None], loss: bool = False, share: bool = False) -> str:
    known = {line: thinned(curve) for line, curve in curves.items() if curve}
    known = {line: points for line, points in known.items() if points}
    if not known:
        return ""
    values = [value for points in known.values() for _, value in points]
    positive = min(values) > 0
    if loss:
        axis = Axis.over(values, label, log=positive and max(values) / min(values) > 20, zero=True)
    else:
        axis = Axis.share(label) if share else Axis.over(values, label, zero=True)
    steps = [step for points in known.values() for step, _ in points]
    plot = Plot(name, Axis.over([*steps, 0], "optimizer step", zero=True), axis)
    for series, (line, points) in enumerate(known.items()):
        plot.line(points, line, series, dots=len(points) <= 30)
    return plot.render()
