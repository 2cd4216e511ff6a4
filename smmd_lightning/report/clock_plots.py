"""Plots about times read from clocks.

Unusual: an error of a reading is drawn where it happened, as an arc on the dial from the true to the read place of the
hour hand, the shorter way round.
"""

from __future__ import annotations

import math
from functools import lru_cache
from html import escape
from typing import Any

from smmd_lightning.answers import TimeOfDay, parse_time
from smmd_lightning.report.error_bars import error_bars
from smmd_lightning.report.ghost import DialPlace, hands, tip
from smmd_lightning.report.judged import Judged
from smmd_lightning.report.svg import WIDTH, Axis, Plot, figure, opening

HALF_TURN, TURN = 360, 720
BINS = (0, 1, 5, 15, 30, 60, 120, 240, 360)
"""Upper edges of the bins of errors, in minutes."""

MOST_ARCS = 60


def minutes_off(read: TimeOfDay, truth: TimeOfDay) -> float:
    """Signed error in minutes on a 12-hour dial, from -360 (exclusive) to 360; above 0 is late.

    >>> minutes_off(TimeOfDay(12, 59), TimeOfDay(1, 0))
    -1.0
    """
    apart = (read.seconds - truth.seconds) / 60 % TURN
    return apart - TURN if apart > HALF_TURN else apart


def times(row: dict[str, Any]) -> tuple[TimeOfDay | None, TimeOfDay | None]:
    """Truth and reading of a row, None where there is no time."""
    return _time(str(row.get("truth"))), _time(str(row.get("parsed") or ""))


@lru_cache(maxsize=4096)  # each plot asks for all of them again
def _time(text: str) -> TimeOfDay | None:
    return parse_time(text)


def mistake(row: dict[str, Any]) -> str:
    """Names the kind of mistake that a reading is.

    >>> mistake({"truth": "03:30", "parsed": "04:30"})
    'one hour off'
    >>> mistake({"truth": "02:15", "parsed": "03:10"})
    'hands swapped'
    """
    truth, read = times(row)
    if truth is None or read is None:
        return "no time read"
    off = abs(minutes_off(read, truth))
    if off == 0:
        return "right"
    if off <= 5:
        return "up to 5 minutes off"
    if read.minute == truth.minute:
        return "one hour off" if off == 60 else "wrong hour, minute right"
    # The minute hand stands at hour m / 5, the hour hand at minute 5 h + m / 12.
    if (
        read.hour % 12 == round(truth.minute / 5) % 12
        and abs(read.minute - (5 * (truth.hour % 12) + truth.minute / 12)) <= 5
    ):
        return "hands swapped"
    return "hour right, minute wrong" if read.hour % 12 == truth.hour % 12 else "both wrong"


MISTAKES = (
    "right",
    "up to 5 minutes off",
    "hour right, minute wrong",
    "one hour off",
    "wrong hour, minute right",
    "hands swapped",
    "both wrong",
    "no time read",
)
"""What `mistake` may answer, from good to bad."""


def plots(judged: Judged) -> list[str]:
    """The plots of a page's section about clocks."""
    return [error_bars(judged, BINS, "minutes off", good=5), mistakes(judged), error_arcs(judged), scatter(judged)]


def overlay(row: dict[str, Any], address: str) -> str:
    """Returns a sample's picture with the time that was read as ghost hands.

    Where it is not known where the dial lies in the picture, a schematic dial stands beside it.

    Args:
        row: A row of the prediction file.
        address: `data:` address of the picture; empty for none.
    """
    truth, read, dial = str(row.get("truth")), row.get("parsed"), DialPlace.of(row.get("meta") or {})
    if address and dial is not None:
        return face(truth, read, dial, address)
    shown = f'<img src="{escape(address)}" alt="">' if address else ""
    return shown + face(truth, read, DialPlace())


def mistakes(judged: Judged) -> str:
    """How often each kind of mistake was made."""
    members: dict[str, list[int]] = {name: [] for name in MISTAKES}
    for place, row in zip(judged.places, judged.rows, strict=True):
        members[mistake(row)].append(place)
    step, left = 24, 160
    longest = max(len(places) for places in members.values())
    parts = []
    for place, (name, rows) in enumerate(members.items()):
        y, width = 8 + place * step, len(rows) / longest * (WIDTH - left - 80)
        share = len(rows) / len(judged.rows)
        parts.append(
            f"{opening(name, rows)}"
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{name}</text>'
            f'<rect style="fill:var(--series-{0 if place < 2 else 1})" x="{left}" y="{y}" width="{width:.1f}" '
            f'height="{step - 6}" rx="2"/>'
            f'<text x="{left + width + 5:.1f}" y="{y + 13}">{len(rows)} ({share:.0%})</text></g>'
        )
    return figure("Kinds of mistakes", "".join(parts), WIDTH, 16 + step * len(MISTAKES))


def scatter(judged: Judged, most: int = 1000) -> str:
    """Truth against reading, drawn where it is nearest to the truth: 12:59 for 1:00 lies at the diagonal."""
    ticks = tuple((60.0 * hour, f"{hour or 12}:00") for hour in (0, 3, 6, 9))
    plot = Plot(
        "Truth against reading",
        Axis(0, TURN, "true time", ticks),
        Axis(-HALF_TURN, TURN + HALF_TURN, "read time", ticks),
        height=330,
    )
    plot.rule((0, 0), (TURN, TURN))
    near: list[tuple[tuple[float, float], str]] = []
    far: list[tuple[tuple[float, float], str]] = []
    for row in judged.rows[:most]:
        truth, read = times(row)
        if truth is None or read is None:
            continue
        off, x = minutes_off(read, truth), truth.seconds / 60 % TURN
        hint = f"{row.get('id')}: {truth} read as {read}"
        (near if abs(off) <= 5 else far).append(((x, x + off), hint))
    for group, series in ((near, 0), (far, 1)):
        plot.dots([point for point, _ in group], [hint for _, hint in group], series=series, radius=2.4)
    return plot.render()


def error_arcs(judged: Judged) -> str:
    """The worst errors as arcs on the dial, from the true to the read place of the hour hand, worst outermost."""
    found = []
    for row in judged.rows:
        truth, read = times(row)
        if truth is not None and read is not None and (off := minutes_off(read, truth)):
            found.append((abs(off), off, truth.seconds / 60 % TURN, f"{row.get('id')}: {truth} read as {read}"))
    found = sorted(found, reverse=True)[:MOST_ARCS]
    middle, outer = WIDTH / 2, 148.0
    parts = [f'<circle class="face" cx="{middle}" cy="{middle}" r="{outer + 8}"/>']
    for hour in range(1, 13):
        x, y = _around(middle, outer + 20, 60 * hour)
        parts.append(f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{hour}</text>')
    gap = min(8.0, 128 / max(len(found), 1))
    for place, (size, off, start, hint) in enumerate(found):
        radius = outer - place * gap
        (x0, y0), (x1, y1) = _around(middle, radius, start), _around(middle, radius, start + off)
        series = 0 if size <= 5 else 2 if size <= 60 else 1
        sweep = 1 if off > 0 else 0
        parts.append(
            f'<path class="arc" style="stroke:var(--series-{series})" '
            f'd="M{x0:.1f} {y0:.1f}A{radius:.1f} {radius:.1f} 0 0 {sweep} {x1:.1f} {y1:.1f}">'
            f"<title>{escape(hint)}</title></path>"
            f'<circle style="fill:var(--series-{series})" cx="{x1:.1f}" cy="{y1:.1f}" r="2.6"/>'
        )
    if not found:
        parts.append(f'<text x="{middle}" y="{middle}" text-anchor="middle">no wrong reading</text>')
    title = "Errors on the dial: from the truth to the dot"
    return figure(title, "".join(parts), WIDTH, WIDTH, below=_key())


def face(truth: str, read: str | None, dial: DialPlace, picture: str = "") -> str:
    """SVG of a picture (or of an empty dial) with the true hands thin and the read hands as ghosts.

    Args:
        truth: The right time, drawn only where there is no picture, which shows it itself.
        read: What the model read; no ghosts if it is no time.
        dial: Where the dial lies in the picture.
        picture: `data:` address of a picture; empty for a schematic dial.
    """
    parts = []
    if picture:
        parts.append(f'<image href="{escape(picture)}" width="100" height="100" preserveAspectRatio="none"/>')
    else:
        parts.append('<circle class="face" cx="50" cy="50" r="46"/>')
        for hour in range(12):
            (x0, y0), (x1, y1) = _around(50, 40, 60 * hour), _around(50, 44, 60 * hour)
            parts.append(f'<line class="axis" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>')
        parts += _hand_lines("hand", truth, dial)
    parts += _hand_lines("ghost", read, dial)
    told = f"{truth} read as {read or 'no time'}"
    return f'<svg class="picture" viewBox="0 0 100 100" role="img" aria-label="{escape(told)}">{"".join(parts)}</svg>'


def _hand_lines(kind: str, time: str | None, dial: DialPlace) -> list[str]:
    x0, y0 = (100 * place for place in dial.centre)
    lines = []
    for hand in hands(time, dial):
        x1, y1 = (100 * place for place in tip(hand, dial))
        lines.append(
            f'<line class="{kind}" style="stroke-width:{100 * hand.width:.1f}" '
            f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'
        )
    return lines


def _around(middle: float, radius: float, minutes: float) -> tuple[float, float]:
    angle = 2 * math.pi * minutes / TURN
    return middle + radius * math.sin(angle), middle - radius * math.cos(angle)


def _key() -> str:
    names = ((0, "up to 5 minutes"), (2, "up to an hour"), (1, "more"))
    return (
        '<p class="key">' + " ".join(f'<span class="swatch s{series}"></span>{name}' for series, name in names) + "</p>"
    )
