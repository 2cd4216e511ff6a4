"""What training changed in what a model believes: the same questions before and after, number by number.

Both runs answered with `save_distributions: true`. Samples are paired by id, and numbers by their place in the answer:
the first number written before beside the first one written after. A model that wrote none has an empty place.

One real example, of the first number of a clock's answer ("09:41" became "03:41")::

    before  expected 4.2 ± 2.9, wrote 9          after  expected 0.0 ± 0.1, wrote 0
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from smmd_lightning.report.picking import pick
from smmd_lightning.report.svg import Axis, Plot, number

Believed = dict[str, Any]


def before_and_after(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], count: int = 6) -> str:
    """Returns plots of the beliefs of `count` samples before and after, and how sure the models were on average.

    Args:
        before: Answers of the earlier model.
        after: Answers of the later one.
        count: How many samples, chosen as the gallery chooses: bad, random and good ones of the later model.

    Raises:
        ValueError: No sample was answered by both with its distributions kept.
    """
    earlier = {str(row.get("id")): row for row in before if row.get("distributions") is not None}
    pairs = [
        (earlier[key], row) for row in after if (key := str(row.get("id"))) in earlier and row.get("distributions")
    ]
    if not pairs:
        raise ValueError(
            "No sample has distributions in both runs. Test both models on the same data with "
            "--model.save_distributions=true."
        )
    chosen = pick([row for _, row in pairs], max(1, count // 3))
    cards = [_card(*pairs[place]) for places in chosen.values() for place in places]
    return f'{_averages(pairs)}<div class="cards large">{"".join(cards)}</div>'


def _averages(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    most = max(len(row["distributions"]) for pair in pairs for row in pair)
    rows = []
    for place in range(min(most, 8)):
        cells = []
        for side in (0, 1):
            found = [pair[side]["distributions"][place] for pair in pairs if len(pair[side]["distributions"]) > place]
            mean = {key: sum(float(each[key]) for each in found) / len(found) for key in ("spread", "share") if found}
            cells.append(f"{number(mean['spread'])}" if found else "–")
            cells.append(f"{100 * mean['share']:.1f} %" if found else "–")
        spreads, shares = cells[::2], cells[1::2]
        listed = "".join(f"<td>{cell}</td>" for cell in (*spreads, *shares))
        rows.append(f"<tr><td>number {place + 1}</td>{listed}</tr>")
    head = "".join(
        f"<th>{name}</th>" for name in ("", "spread before", "after", "probability of numbers before", "after")
    )
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _card(before: dict[str, Any], after: dict[str, Any]) -> str:
    places = max(len(before["distributions"]), len(after["distributions"]))
    plots = []
    for place in range(min(places, 8)):
        sides = [row["distributions"][place] if len(row["distributions"]) > place else None for row in (before, after)]
        plots.append(_plot(place, sides[0], sides[1]))
    said = "".join(
        f"<dt>{name}</dt><dd>{escape(str(row.get('raw') or '')[:200])}</dd>"
        for name, row in (("before", before), ("after", after))
    )
    return (
        f'<article class="card"><div class="id">{escape(str(after.get("id")))}</div>{"".join(plots)}'
        f"<dl><dt>truth</dt><dd>{escape(str(after.get('truth')))}</dd>{said}</dl></article>"
    )


def _plot(place: int, before: Believed | None, after: Believed | None) -> str:
    known = sorted({float(value) for side in (before, after) if side for value, _ in side["values"]})
    if known == [] or (len(known) <= 12 and all(value in range(10) for value in known)):
        known = [float(value) for value in range(10)]
    step = min((b - a for a, b in pairwise(known)), default=1.0)
    low, high = known[0] - step, known[-1] + step
    ticks = tuple((value, number(value)) for value in known[:: 1 + (len(known) - 1) // 10])
    plot = Plot(f"number {place + 1}", Axis(low, high, _beliefs(before, after), ticks), Axis.share(), 300, 150)
    for series, (name, side) in enumerate((("before", before), ("after", after))):
        shift = (series - 1) * 0.4 * step
        for value, p in side["values"] if side else ():
            hint = f"{name}: {number(float(value))} with {p:.1%}"
            plot.bar(float(value) + shift, float(value) + shift + 0.4 * step, float(p), hint, series=series)
        plot.name(name, series)
    return plot.render()


def _beliefs(before: Believed | None, after: Believed | None) -> str:
    said = [
        f"{number(float(side['expected']))} ± {number(float(side['spread']))}" if side else "none"
        for side in (before, after)
    ]
    return " → ".join(said)
