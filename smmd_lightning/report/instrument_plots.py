"""Plots about readings of instruments, and the reading drawn over the picture where it is known where the scale lies.

Unusual: an error is a part of the scale, so that a thermometer and a pressure gauge stand in one plot. For a drawn
picture `meta` tells the scale's places in it: the reading then becomes a needle, or a marker where none turns.

One real example::

    >>> on_scale([[0.0, 1.0], [0.5, 0.0], [1.0, 1.0]], 0.25)
    (0.25, 0.5)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from smmd_lightning.answers import parse_number
from smmd_lightning.report.error_bars import error_bars, errors
from smmd_lightning.report.judged import Judged
from smmd_lightning.report.svg import WIDTH, Axis, Plot, figure, number

EDGES = (0, 0.5, 1, 2, 5, 10, 20, 50)
GOOD = 2
"""Percent of the scale up to which a reading is drawn as a good one."""


def plots(judged: Judged) -> list[str]:
    """The plots of a page's section about instruments."""
    return [error_bars(judged, EDGES, "% of the scale off", GOOD), by_family(judged), scatter(judged)]


def overlay(row: dict[str, Any], address: str) -> str:
    """Returns a sample's picture with the reading over it.

    Args:
        row: A row of the prediction file.
        address: `data:` address of the picture; empty for none.

    Returns:
        HTML; empty where there is no picture, no reading, or nothing is known about the places of the scale.
    """
    meta = row.get("meta") or {}
    place = share_of_scale(row.get("parsed"), meta)
    points, pivot = _points(meta.get("scale_points")), _points([meta.get("pivot")])
    if not address or place is None or len(points) < 2:
        return ""
    x, y = (100 * part for part in on_scale(points, min(max(place, 0.0), 1.0)))
    mark = f'<circle class="ghost" fill="none" style="stroke-width:1.6" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    if pivot:
        x0, y0 = (100 * part for part in pivot[0])
        mark = f'<line class="ghost" style="stroke-width:2" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
    told = escape(f"{row.get('truth')} read as {row.get('parsed')}")
    return (
        f'<svg class="picture" viewBox="0 0 100 100" role="img" aria-label="{told}">'
        f'<image href="{escape(address)}" width="100" height="100" preserveAspectRatio="none"/>{mark}</svg>'
    )


def share_of_scale(text: Any, meta: Mapping[str, Any]) -> float | None:
    """Where a reading lies on its scale, 0 at the start and 1 at the end; None for no number or no known scale."""
    read = parse_number(str(text)) if text is not None else None
    try:
        low, high = (float(end) for end in meta["scale"])
    except (KeyError, TypeError, ValueError):
        return None
    if read is None or not math.isfinite(high - low) or high == low:
        return None
    place = (float(read) - low) / (high - low)
    return place if math.isfinite(place) else None


def on_scale(points: Sequence[Sequence[float]], share: float) -> tuple[float, float]:
    """The place in the picture of a share of the scale, between its evenly spaced points."""
    along = share * (len(points) - 1)
    before = min(int(along), len(points) - 2)
    part = along - before
    (x0, y0), (x1, y1) = points[before], points[before + 1]
    return x0 + part * (x1 - x0), y0 + part * (y1 - y0)


def by_family(judged: Judged, most: int = 24) -> str:
    """Median error of each kind of instrument, best first, with the share of readings within half a tick."""
    near = judged.metrics.close_enough(judged.table_NC).tolist()
    families: dict[str, list[tuple[float, bool]]] = {}
    for row, error, good in zip(judged.rows, errors(judged), near, strict=True):
        kind = str((row.get("meta") or {}).get("kind") or "other")
        families.setdefault(kind, []).append((min(error, 100.0), good))  # nothing read counts as a whole scale
    if len(families) < 2:
        return ""
    found = sorted((median(error for error, _ in members), kind) for kind, members in families.items())[:most]
    left, right, step = 128, WIDTH - 96, 21
    longest = max(error for error, _ in found) or 1.0
    parts = [f'<text x="{left}" y="11">median error, % of the scale</text>']
    for line, (error, kind) in enumerate(found):
        y, width = 20 + line * step, error / longest * (right - left)
        members = families[kind]
        share = sum(good for _, good in members) / len(members)
        shown = kind[:20].replace("_", " ")
        hint = f"{kind}: median error {error:.2g} % of the scale, {share:.0%} of {len(members)} within half a tick"
        parts.append(
            f'<g><title>{escape(hint)}</title><text x="{left - 6}" y="{y + 12}" text-anchor="end">'
            f'{escape(shown)}</text><rect style="fill:var(--series-{0 if error <= GOOD else 1})" x="{left}" '
            f'y="{y}" width="{max(width, 1):.1f}" height="{step - 5}" rx="2"/>'
            f'<text x="{left + width + 5:.1f}" y="{y + 12}">{number(error)} % · {share:.0%} of {len(members)}</text>'
            "</g>"
        )
    return figure(
        "Error by kind of instrument",
        "".join(parts),
        WIDTH,
        24 + step * len(found),
        below='<p class="key">behind each bar: median error, share of readings within half a tick</p>',
    )


def scatter(judged: Judged, most: int = 1000) -> str:
    """True against read place on the scale, in percent."""
    near: list[tuple[tuple[float, float], str]] = []
    far: list[tuple[tuple[float, float], str]] = []
    for row, error in list(zip(judged.rows, errors(judged), strict=True))[:most]:
        meta = row.get("meta") or {}
        truth, read = share_of_scale(meta.get("value"), meta), share_of_scale(row.get("parsed"), meta)
        if truth is not None and read is not None:
            hint = f"{row.get('id')}: {row.get('truth')} read as {row.get('parsed')}"
            (near if error <= GOOD else far).append(((truth, read), hint))
    if not near and not far:
        return ""
    ticks = tuple((quarter / 4, f"{25 * quarter} %") for quarter in range(5))
    plot = Plot(
        "Truth against reading",
        Axis(-0.02, 1.02, "true place on the scale", ticks),
        Axis(-0.1, 1.1, "read place", ticks),
        height=330,
    )
    plot.rule((0, 0), (1, 1))
    for group, series in ((near, 0), (far, 1)):
        plot.dots([point for point, _ in group], [hint for _, hint in group], series=series, radius=2.4)
    return plot.render()


def _points(found: Any) -> list[tuple[float, float]]:
    """Reads places in the picture from `meta`; empty where they are none."""
    if not isinstance(found, (list, tuple)):
        return []
    points = []
    for point in found:
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            return []
        if not all(isinstance(part, (int, float)) and math.isfinite(part) for part in point):
            return []
        points.append((float(point[0]), float(point[1])))
    return points
