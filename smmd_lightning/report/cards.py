"""Worst, random and best answers as cards: picture, prompt, truth, raw output, parsed value, error.

A task's metrics class names the function that draws its answers over the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.registry import load
from smmd_lightning.report.picking import pick, picture
from smmd_lightning.report.svg import number

MOST_RAW = 400


def gallery(rows: Sequence[dict[str, Any]], folder: Path, count: int = 6) -> str:
    """Returns the cards; samples whose picture was stored are preferred where any was.

    Args:
        rows: Answers of one task.
        folder: The run's folder, which the paths of pictures are relative to.
        count: Cards in each of the three groups.
    """
    with_picture = [row for row in rows if row.get("image")]
    shown = with_picture if len(with_picture) >= 3 else list(rows)
    parts = []
    for name, numbers in pick(shown, count).items():
        if numbers:
            cards = "".join(card(shown[number], folder) for number in numbers)
            parts.append(f'<h3>{name.capitalize()}</h3><div class="cards">{cards}</div>')
    if any(metrics_for(str(row.get("task"))).overlay_svg for row in shown):
        parts.append('<p class="key"><span class="swatch s1"></span>the answer, drawn over the picture</p>')
    return "".join(parts)


def beliefs(row: dict[str, Any], most: int = 8) -> str:
    """What the model believed of each number it wrote, where `save_distributions` kept it: bars, and mean ± spread."""
    parts = []
    for found in (row.get("distributions") or [])[:most]:
        values = found.get("values") or []
        bars = []
        for place, (value, p) in enumerate(values):
            kind = "written" if number(float(value)) == found.get("written") else "other"
            bars.append(
                f'<rect class="{kind}" x="{12 * place}" y="{22 * (1 - p):.1f}" width="10" height="{22 * p:.1f}">'
                f"<title>{number(float(value))}: {p:.1%}</title></rect>"
                f'<text x="{12 * place + 5}" y="31" text-anchor="middle">{number(float(value))}</text>'
            )
        width = max(12 * len(values), 24)
        parts.append(
            f'<div class="belief"><svg viewBox="0 0 {width} 33" style="width:{width}px" role="img" '
            f'aria-label="beliefs about {escape(str(found.get("written")))}">{"".join(bars)}</svg>'
            f"{number(float(found['expected']))} ± {number(float(found['spread']))}</div>"
        )
    return f'<div class="beliefs">{"".join(parts)}</div>' if parts else ""


def card(row: dict[str, Any], folder: Path) -> str:
    """Returns the card of one answer."""
    address = picture(folder, row)
    overlay = metrics_for(str(row.get("task"))).overlay_svg
    pictures = load(overlay)(row, address) if overlay else ""
    if address and not pictures:
        pictures = f'<img src="{escape(address)}" alt="">'
    raw = str(row.get("raw") or "")
    error, unit = row.get("error"), row.get("error_unit")
    if row.get("correct"):
        off = "right"
    elif error is None:
        off = "wrong" if row.get("parsed") is not None else "nothing read"
    elif unit == "relative":
        off = f"{100 * float(error):.3g} % off"
    else:
        told = "" if unit in (None, "", "absolute") else f"{unit} "
        off = f"{number(float(error))} {told}off"
    facts = (
        ("truth", str(row.get("truth"))),
        ("read as", str(row.get("parsed") if row.get("parsed") is not None else "–")),
    )
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        f'<article class="card {"right" if row.get("correct") else "wrong"}">'
        f'<div class="pictures">{pictures}</div><div class="off">{escape(off)}</div><dl>{listed}</dl>'
        f'<p class="prompt">{escape(str(row.get("prompt") or "")[:MOST_RAW])}</p>'
        f"{beliefs(row)}"
        f'<pre class="raw" title="raw output">{escape(raw[:MOST_RAW])}{"…" if len(raw) > MOST_RAW else ""}</pre>'
        f'<div class="id">{escape(str(row.get("id")))}</div></article>'
    )
