"""How many answers are how far off, in bins that grow; a bar opens its answers in the table below."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from smmd_lightning.report.judged import Judged
from smmd_lightning.report.svg import Axis, Plot


def errors(judged: Judged) -> list[float]:
    """Distance of each answer, infinite where nothing was read, NaN where the truth has none; [] of a task without."""
    distances_N = judged.metrics.distances(judged.table_NC)
    return [] if distances_N is None else distances_N.tolist()


def bins(distances: Sequence[float], edges: Sequence[float]) -> list[list[int]]:
    """Sorts answers by their distance.

    Args:
        distances: One an answer; NaN is left out.
        edges: Upper edges of the bins, growing. Distances are float32, so an edge is widened by a millionth.

    Returns:
        Answers' numbers of each bin, then those beyond the last edge, then those where nothing was read.

    >>> bins([0, 5, 7, 99, float("inf"), float("nan")], [0, 5, 10])
    [[0], [1], [2], [3], [4]]
    """
    found: list[list[int]] = [[] for _ in range(len(edges) + 2)]
    widened = [edge * (1 + 1e-6) for edge in edges]
    for answer, distance in enumerate(distances):
        if not math.isnan(distance):
            found[-1 if math.isinf(distance) else bisect_left(widened, distance)].append(answer)
    return found


def error_bars(judged: Judged, edges: Sequence[float], label: str, good: float, scale: float = 1.0) -> str:
    """Returns the plot; empty where no truth has a distance.

    Args:
        judged: Answers of one task.
        edges: Upper edges of the bins, in the unit of the plot.
        label: What the edges are, such as "minutes off".
        good: Bars up to this edge are drawn as good ones.
        scale: Unit of the plot in units of the metric's distances, 100 for percent of a share.
    """
    groups = bins([scale * distance for distance in errors(judged)], edges)
    if not any(groups):
        return ""
    names = [*(f"{edge:g}" for edge in edges), f">{edges[-1]:g}", "none"]
    if not groups[-2]:  # a dial has no reading beyond its last edge
        del groups[-2], names[-2]
    ticks = tuple((place + 0.5, name) for place, name in enumerate(names))
    most = max(len(group) for group in groups)
    plot = Plot(
        "Error of the answers",
        Axis(0, len(names), f"{label}, up to (none: nothing read)", ticks),
        Axis.over([0, most * 1.08], "answers", zero=True),
    )
    for place, (name, group) in enumerate(zip(names, groups, strict=True)):
        good_one = place < len(edges) and edges[place] <= good
        told = "nothing read" if name == "none" else f"{label} {name}" if ">" in name else f"{label}: up to {name}"
        plot.bar(
            place,
            place + 1,
            len(group),
            f"{told}; {len(group)} answers",
            str(len(group)) if group else "",
            series=7 if name == "none" else 0 if good_one else 1,
            opens=(told, [judged.places[answer] for answer in group]),
        )
    return plot.render()
