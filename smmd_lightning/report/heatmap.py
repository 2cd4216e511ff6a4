"""Shares as shaded cells, such as which digit was answered for which.

One real example::

    svg = heatmap("Digits: ones", ["1", "7"], ["1", "7"], [[0.9, 0.1], [0.4, 0.6]], labels=("truth", "answer"))
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from smmd_lightning.report.svg import WIDTH, figure


def heatmap(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float]],
    hints: Sequence[Sequence[str]] | None = None,
    labels: tuple[str, str] = ("", ""),
    every: int = 1,
) -> str:
    """Draws cells, the darker the larger the share in [0, 1].

    Args:
        title: Heading.
        rows: Names of the rows, top to bottom.
        columns: Names of the columns.
        shares: One share a cell, row by row.
        hints: What shows under the pointer.
        labels: What rows and what columns are.
        every: Name every n-th row and column only.
    """
    width, left, top = WIDTH, 34, 26
    side = min((width - left - 10) / max(len(columns), 1), 30)
    height = int(top + side * len(rows) + 22)
    parts = [f'<text x="2" y="12">{escape(labels[0])} ↓ &#160; {escape(labels[1])} →</text>']
    for row, name in enumerate(rows):
        y = top + row * side
        if row % every == 0:
            parts.append(f'<text x="{left - 5}" y="{y + side / 2 + 3.5:.1f}" text-anchor="end">{escape(name)}</text>')
        for column, share in enumerate(shares[row]):
            hint = f"<title>{escape(hints[row][column])}</title>" if hints else ""
            shown = f' style="fill-opacity:{min(max(share, 0.0), 1.0) ** 0.6:.3f}"'
            gap = 1 if side > 6 else 0
            parts.append(
                f'<rect class="cell"{shown} x="{left + column * side:.2f}" y="{y:.2f}" width="{side - gap:.2f}" '
                f'height="{side - gap:.2f}">{hint}</rect>'
            )
    for column, name in enumerate(columns):
        if column % every == 0:
            x, y = left + (column + 0.5) * side, top + side * len(rows) + 12
            parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(name)}</text>')
    return figure(title, "".join(parts), width, height)
