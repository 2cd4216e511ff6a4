"""Worst, random and best answers as cards: picture, prompt, truth, raw output, parsed value, error.

A task's metrics class names the function that draws its answers over the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from markupsafe import Markup

from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.registry import load
from smmd_lightning.report.picking import pick, picture
from smmd_lightning.report.svg import number
from smmd_lightning.report.templates import render

MOST_RAW = 400


def gallery(rows: Sequence[dict[str, Any]], folder: Path, count: int = 6) -> Markup:
    """Returns the cards; samples whose picture was stored are preferred where any was.

    Args:
        rows: Answers of one task.
        folder: The run's folder, which the paths of pictures are relative to.
        count: Cards in each of the three groups.
    """
    with_picture = [row for row in rows if row.get("image")]
    shown = with_picture if len(with_picture) >= 3 else list(rows)
    groups: list[dict[str, Any]] = [
        {"title": name.capitalize(), "cards": [card(shown[place], folder) for place in places]}
        for name, places in pick(shown, count).items()
        if places
    ]
    overlaid = any(each["overlay"] for group in groups for each in group["cards"])
    return render("cards.html", groups=groups, overlaid=overlaid)


def card(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns what the card of one answer shows."""
    address, overlay = picture(folder, row), metrics_for(str(row.get("task"))).overlay_svg
    raw = str(row.get("raw") or "")
    return {
        "verdict": "right" if row.get("correct") else "wrong",
        "overlay": Markup(load(overlay)(row, address)) if overlay else "",
        "picture": address,
        "off": how_far_off(row),
        "truth": str(row.get("truth")),
        "parsed": "–" if row.get("parsed") is None else str(row["parsed"]),
        "prompt": str(row.get("prompt") or "")[:MOST_RAW],
        "beliefs": Markup(beliefs(row)),
        "raw": raw[:MOST_RAW] + ("…" if len(raw) > MOST_RAW else ""),
        "id": str(row.get("id")),
    }


def how_far_off(row: dict[str, Any]) -> str:
    """Says in words how far off an answer is.

    >>> how_far_off({"parsed": "9", "error": 0.125, "error_unit": "relative"})
    '12.5 % off'
    """
    error, unit = row.get("error"), row.get("error_unit")
    if row.get("correct"):
        return "right"
    if error is None or not math.isfinite(float(error)):
        return "wrong" if row.get("parsed") is not None else "nothing read"
    if unit == "relative":
        return f"{100 * float(error):.3g} % off"
    told = "" if unit in (None, "", "absolute") else f"{unit} "
    return f"{number(float(error))} {told}off"


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
