"""What stands around a chart's marks: title, legend, axes with round ticks.

What is unusual: each part takes its strip from the free box that is left, so that nothing overlaps whatever
the texts are. Coordinates are pixels of the finished image, y downwards.

One real example: `axis_ticks(Decimal(0), Decimal(43), 5)` gives 0, 10, 20, 30, 40, 50.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from datamodules.chart.canvas import Canvas, Colour, word, wrapped
from datamodules.chart.data import ChartTable
from datamodules.chart.style import ChartStyle


def axis_ticks(low: Decimal, high: Decimal, count: int) -> list[Decimal]:
    """Round numbers that span a range: multiples of 1, 2, 2.5 or 5 times a power of ten.

    Args:
        low: Least value.
        high: Greatest value.
        count: About how many intervals are wanted; there are at most one or two more.

    Returns:
        Rising ticks, the first at most `low`, the last at least `high`.

    Raises:
        ValueError: The range is empty or the count below 1.

    >>> [str(tick) for tick in axis_ticks(Decimal(0), Decimal("0.83"), 4)]
    ['0.00', '0.25', '0.50', '0.75', '1.00']
    """
    if high <= low or count < 1:
        raise ValueError(f"ticks need low < high and a count of at least 1, got {low}, {high} and {count}")
    raw = (high - low) / count
    power = Decimal(1).scaleb(raw.adjusted())
    factors = (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
    step = next(factor * power for factor in factors if factor * power >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * place for place in range(first, last + 1)]


def number_text(value: Decimal, commas: bool = False) -> str:
    """Writes a number without an exponent or needless zeros.

    >>> number_text(Decimal("1.20E+4"), commas=True), number_text(Decimal("0.50"))
    ('12,000', '0.5')
    """
    text = f"{value:,f}" if commas else f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Page:
    """A chart in the making: the canvas and the box that is still free.

    Args:
        table: What is shown.
        style: How.
        width: Pixels.
        height: Pixels.
    """

    def __init__(self, table: ChartTable, style: ChartStyle, width: int, height: int) -> None:
        self.table, self.style = table, style
        self.canvas = Canvas(width, height, style.background)
        self.font = max(8, round(style.font_share * height))
        self.pad = self.font * 0.5
        self.left, self.top, self.right, self.bottom = self.pad, self.pad, width - self.pad, height - self.pad

    def title(self) -> None:
        """Writes the heading, with the unit where no axis title has room for it."""
        table, style, size = self.table, self.style, round(self.font * 1.3)
        text = table.title
        if table.unit and (style.kind == "pie" or not style.axis_titles):
            text += f" ({table.unit})" if table.unit != "%" else " (in percent)"
        for line in wrapped(text, size, self.right - self.left):
            place = (self.left + self.right) / 2 if style.centred_title else self.left
            self.canvas.text(place, self.top, line, size, style.ink, "mt" if style.centred_title else "lt")
            self.top += size * 1.25
        self.top += self.pad * 0.5

    def legend(self, names: Sequence[str], colours: Sequence[Colour]) -> None:
        """Puts a key of colours where the style wants it; long ones go on top."""
        size, style = self.font, self.style
        swatch, gap = size * 0.8, size * 0.4
        widths = [swatch + gap + word(name, size).width + 2 * gap for name in names]
        if style.legend == "none":
            return
        if style.legend == "right" and max(widths) < 0.33 * (self.right - self.left):
            self.right -= max(widths)
            places = [(self.right + 2 * gap, self.top + (2 + row) * size * 1.5) for row in range(len(names))]
        else:
            places, rows = _flow(widths, self.left, self.right, size * 1.5)
            start = self.top if style.legend != "bottom" else self.bottom - rows * size * 1.5
            places = [(x, y + start) for x, y in places]
            if style.legend == "bottom":
                self.bottom -= rows * size * 1.5 + self.pad
            else:
                self.top += rows * size * 1.5 + self.pad * 0.5
        for (x, y), name, colour in zip(places, names, colours, strict=False):
            self.canvas.rectangle(x, y, x + swatch, y + swatch, colour)
            self.canvas.text(x + swatch + gap, y + swatch / 2, name, size, style.ink, "lm")

    def value_title(self) -> str:
        """Name of the value axis with its unit."""
        table = self.table
        name = table.measure[:1].upper() + table.measure[1:]
        return f"{name} ({table.unit})" if table.unit else name

    def axis_titles(self, across: str, upwards: str) -> None:
        """Names the two axes, `upwards` turned to read from bottom to top; long names get smaller letters."""
        if not self.style.axis_titles:
            return
        for text, room, turned in (
            (upwards, self.bottom - self.top, True),
            (across, self.right - self.left, False),
        ):
            size = self.font
            while size > 7 and word(text, size).width > room:
                size -= 1
            if turned:
                middle = (self.top + self.bottom) / 2
                self.canvas.text(self.left, middle, text, size, self.style.ink, "lm", turned=True)
                self.left += size * 1.5
            else:
                self.canvas.text((self.left + self.right) / 2, self.bottom, text, size, self.style.ink, "mb")
                self.bottom -= size * 1.5

    def tick_texts(self, ticks: Sequence[Decimal]) -> list[str]:
        """Words beside the ticks of the value axis."""
        mark = "%" if self.table.unit == "%" else ""
        return [number_text(tick, self.style.commas) + mark for tick in ticks]


def _flow(widths: Sequence[float], left: float, right: float, line: float) -> tuple[list[tuple[float, float]], int]:
    """Sets items into centred rows: their places from the top of the first row, and how many rows."""
    rows: list[list[float]] = [[]]
    for width in widths:
        if rows[-1] and sum(rows[-1]) + width > right - left:
            rows.append([])
        rows[-1].append(width)
    places = []
    for number, row in enumerate(rows):
        x = left + (right - left - sum(row)) / 2
        for width in row:
            places.append((x, number * line))
            x += width
    return places, len(rows)
