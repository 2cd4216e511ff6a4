"""Plots for every task: tolerances, confidence, confusions of digits, results by kind; and those about numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from smmd_lightning.answers import parse_quantity
from smmd_lightning.metrics import AnswerMetrics
from smmd_lightning.report.error_bars import error_bars, errors
from smmd_lightning.report.heatmap import heatmap
from smmd_lightning.report.judged import NO_DIGIT, Judged, digit_confusion, groups, share_within, wilson
from smmd_lightning.report.svg import WIDTH, Axis, Plot, figure, opening

# -- all tasks ---------------------------------------------------------------------------------------------------


def tolerance_curve(judged: Judged) -> str:
    """Share of answers that are right, against how far off still counts as right."""
    known, curve = [error for error in errors(judged) if not math.isnan(error)], judged.metrics.curve
    if not known or curve is None:
        return ""
    if curve.ticks:
        axis = Axis(min(curve.tolerances), max(curve.tolerances), curve.label, tuple(curve.ticks), log=curve.log)
    else:
        axis = Axis.over(list(curve.tolerances), curve.label, zero=not curve.log, log=curve.log)
    shares = share_within(known, curve.tolerances)
    plot = Plot(curve.title, axis, Axis.share("of answers"))
    pairs = list(zip(curve.tolerances, shares, strict=True))
    plot.band([(x, share.low, share.high) for x, share in pairs])
    plot.line([(x, share.value) for x, share in pairs])
    return plot.render()


def confidences(judged: Judged) -> list[tuple[float, bool]]:
    """Probability that the model gave to all numbers it wrote, and whether the answer is right, where it was kept."""
    found = []
    for row in judged.rows:
        believed = row.get("distributions")
        if believed:
            share = math.prod(
                next((p for value, p in each["values"] if value == float(each["written"])), 0.0) * each["share"]
                for each in believed
            )
            found.append((share, bool(row.get("correct"))))
    return found


def calibration(judged: Judged, bins: int = 8) -> str:
    """Share of right answers against the model's own confidence in what it wrote; nothing where it was not kept."""
    known = sorted(confidences(judged))
    if not known:
        return ""
    plot = Plot("Confidence and accuracy", Axis.share("confidence in the numbers written"), Axis.share("right"))
    plot.rule((0, 0), (1, 1))
    size = math.ceil(len(known) / bins)
    points, band = [], []
    for start in range(0, len(known), size):
        part = known[start : start + size]
        hits, middle = sum(right for _, right in part), sum(share for share, _ in part) / len(part)
        points.append((middle, hits / len(part)))
        band.append((middle, *wilson(hits, len(part))))
    plot.band(band)
    plot.line(points, dots=True)
    return plot.render()


def digit_texts(row: dict[str, Any], metrics: AnswerMetrics) -> tuple[str, str] | None:
    """Digits of truth and answer of a row, to be compared from the right; None where there are none."""
    truth, answer = metrics.digits(str(row.get("truth"))), metrics.digits(str(row.get("parsed") or ""))
    return None if truth is None or answer is None else (truth, answer)


def confusions(judged: Judged, most: int = 4) -> list[str]:
    """True against answered digit at each place, the lowest ones from hundredths on."""
    pairs = [texts for row in judged.rows if (texts := digit_texts(row, judged.metrics))]
    plots = []
    names = dict(enumerate(judged.metrics.places)) | {-1: "tenths", -2: "hundredths"}
    named = [item for item in digit_confusion(pairs).items() if item[0] in names]
    for place, counts in named[:most]:
        rows = sorted({truth for truth, _ in counts})
        columns = sorted({answer for _, answer in counts} | set(rows), key=lambda digit: (digit == NO_DIGIT, digit))
        totals = {row: sum(count for (truth, _), count in counts.items() if truth == row) for row in rows}
        plots.append(
            heatmap(
                f"Digits: {names[place]}",
                rows,
                columns,
                [[counts[row, column] / totals[row] for column in columns] for row in rows],
                [
                    [f"{row} answered as {column}: {counts[row, column]} of {totals[row]}" for column in columns]
                    for row in rows
                ],
                ("truth", "answer"),
            )
        )
    return plots[::-1]


def by_kind(judged: Judged) -> list[str]:
    """Share of right answers for each value of each fact known about the samples."""
    tolerant = judged.metrics.close_enough(judged.table_NC).tolist()
    plots = []
    for fact, members in groups(judged.rows).items():
        if fact in ("minute", "second"):
            continue
        bars = []
        for value, numbers in members.items():
            exact = sum(bool(judged.rows[number].get("correct")) for number in numbers)
            places = [judged.places[number] for number in numbers]
            bars.append((value, places, exact, sum(tolerant[number] for number in numbers)))
        plots.append(share_bars(fact.replace("_", " ").capitalize(), bars, judged.metrics.tolerant_rule))
    return plots


def share_bars(title: str, bars: Sequence[tuple[str, Sequence[int], int, int]], tolerant: str) -> str:
    """Draws lying bars with the 95 % interval of the tolerable share; a bar opens its answers.

    Args:
        title: Heading.
        bars: (name, row numbers of the answers, how many are exactly right, how many tolerably right).
        tolerant: What "tolerably" means.
    """
    left, right, step = 122, WIDTH - 62, 21
    parts = [f'<text x="2" y="11">solid: exact, pale: {tolerant}</text>']
    for place, (name, rows, exact, good) in enumerate(bars):
        total = len(rows)
        y, scale = 20 + place * step, right - left
        low, high = (left + edge * scale for edge in wilson(good, total))
        middle = y + step / 2 - 2
        shown = (name if len(name) <= 19 else name[:18] + "…").replace("_", " ")
        parts.append(
            f"{opening(f'{title}: {name}', rows)}"
            f"<title>{escape(name)}: {exact} exact, {good} {tolerant}, of {total}</title>"
            f'<rect class="track" x="{left}" y="{y}" width="{scale}" height="{step - 5}" rx="2"/>'
            f'<rect class="soft" x="{left}" y="{y}" width="{good / total * scale:.1f}" height="{step - 5}" rx="2"/>'
            f'<rect style="fill:var(--series-0)" x="{left}" y="{y}" width="{exact / total * scale:.1f}" '
            f'height="{step - 5}" rx="2"/>'
            f'<line class="whisker" x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}"/>'
            f'<text x="{left - 6}" y="{middle + 4}" text-anchor="end">{escape(shown)}</text>'
            f'<text x="{right + 5}" y="{middle + 4}">{good / total:.0%} of {total}</text></g>'
        )
    return figure(title, "".join(parts), WIDTH, 24 + step * len(bars))


# -- numbers -----------------------------------------------------------------------------------------------------


def relative_histogram(judged: Judged) -> str:
    """How many answers are how far off, relative to the truth."""
    return error_bars(judged, (0, 1, 2, 5, 10, 20, 50, 100, 1000), "% of the truth off", good=5, scale=100)


def number_scatter(judged: Judged, most: int = 1000) -> str:
    """Truth against answer; logarithmic where all are above 0 and span more than a factor of 100."""
    points = []
    for row in judged.rows[:most]:
        numbers = parse_quantity(str(row.get("truth"))), parse_quantity(str(row.get("parsed") or ""))
        if numbers[0] is None or numbers[1] is None:
            continue
        x, y = (float(number.value) for number in numbers if number)
        if math.isfinite(x) and math.isfinite(y):
            hint = f"{row.get('id')}: {row.get('truth')} answered as {row.get('parsed')}"
            points.append(((x, y), hint, bool(row.get("correct"))))
    if not points:
        return ""
    truths = [point[0][0] for point in points]
    log = min(min(point) for point, _, _ in points) > 0 and max(truths) / min(truths) > 100
    low, high = min(truths), max(truths)
    span = (high - low) or abs(high) or 1.0
    # A wild answer (10^30) must not press all others into a corner: what lies outside is drawn at the border.
    answers = [
        min(max(y, low / 100 if log else low - span), high * 100 if log else high + span) for (_, y), _, _ in points
    ]
    plot = Plot(
        "Truth against answer", Axis.over(truths, "truth", log=log), Axis.over(answers, "answer", log=log), height=330
    )
    plot.rule((low, low), (high, high))
    for right, series in ((True, 0), (False, 1)):
        chosen = [(point, hint) for point, hint, correct in points if correct is right]
        plot.dots([point for point, _ in chosen], [hint for _, hint in chosen], series=series, radius=2.4)
    return plot.render()
