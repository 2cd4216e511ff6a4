"""Where values and categories lie on a page, and the axes that say so.

One real example: after `axes = upright_axes(page, Decimal(43))`, `axes.height(Decimal(50))` is its top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from datamodules.chart.canvas import word
from datamodules.chart.surround import Page, axis_ticks, number_text


@dataclass
class Axes:
    """A plot's box and scales.

    Attributes:
        left: Pixels from the left.
        top: Pixels from the top.
        right: Pixels from the left.
        bottom: Pixels from the top.
        step: Pixels from one category to the next.
        lying: Whether categories run downwards and values across.
        highest: Value at the top (across: at the right) of the box; 0 lies at the other end.
        farthest: Value at the right end of a numeric category axis.
    """

    left: float
    top: float
    right: float
    bottom: float
    step: float
    lying: bool
    highest: Decimal
    farthest: Decimal = Decimal(1)

    def slot(self, place: int) -> float:
        """Middle of a category's slot, in pixels."""
        return (self.top if self.lying else self.left) + (place + 0.5) * self.step

    def height(self, value: Decimal) -> float:
        """Pixel row of a value."""
        return self.bottom - float(value / self.highest) * (self.bottom - self.top)

    def across(self, value: Decimal) -> float:
        """Pixel column of a value."""
        scale = self.highest if self.lying else self.farthest
        return self.left + float(value / scale) * (self.right - self.left)

    def baseline(self, page: Page) -> None:
        """Draws the line that values are counted from."""
        ink = page.style.ink
        if self.lying:
            page.canvas.straight((self.left, self.top), (self.left, self.bottom), ink)
        else:
            page.canvas.straight((self.left, self.bottom), (self.right, self.bottom), ink)


def upright_axes(page: Page, highest: Decimal) -> Axes:
    """Values upwards, categories across."""
    table, size = page.table, page.font
    page.axis_titles(table.axis, page.value_title())
    ticks = axis_ticks(Decimal(0), highest, page.style.tick_count)
    left, texts = _value_strip(page, ticks)
    step = (page.right - left) / len(table.categories)
    longest = max(word(name, size).width for name in table.categories)
    turned = longest > step - 3
    bottom = page.bottom - (longest if turned else size * 1.2) - page.pad
    axes = Axes(left, page.top + _headroom(page, texts), page.right, bottom, step, False, ticks[-1])
    for place, name in enumerate(table.categories):
        page.canvas.text(axes.slot(place), bottom + page.pad * 0.7, name, size, page.style.ink, "mt", turned=turned)
    _value_ticks(page, axes, ticks, texts)
    return axes


def numeric_axes(page: Page, highest: Decimal) -> Axes:
    """Values upwards, numbers across."""
    table, size = page.table, page.font
    page.axis_titles(table.axis, page.value_title())
    ticks = axis_ticks(Decimal(0), highest, page.style.tick_count)
    steps = axis_ticks(Decimal(0), max(map(Decimal, table.categories)), 5)
    left, texts = _value_strip(page, ticks)
    right = page.right - size * 0.7  # room for half of the last number
    axes = Axes(
        left,
        page.top + page.pad,
        right,
        page.bottom - size * 1.2 - page.pad,
        0.0,
        False,
        ticks[-1],
        steps[-1],
    )
    for value in steps:
        x = axes.across(value)
        if page.style.grid and value:
            page.canvas.straight((x, axes.top), (x, axes.bottom), page.style.grid_colour)
        page.canvas.text(x, axes.bottom + page.pad * 0.7, f"{value:f}", size, page.style.ink, "mt")
    _value_ticks(page, axes, ticks, texts)
    return axes


def lying_axes(page: Page, highest: Decimal) -> Axes:
    """Values across, categories downwards."""
    table, style, size = page.table, page.style, page.font
    page.axis_titles(page.value_title(), table.axis)
    ticks = axis_ticks(Decimal(0), highest, style.tick_count)
    texts = page.tick_texts(ticks)
    left = page.left + max(word(name, size).width for name in table.categories) + page.pad
    room = max(word(text, size).width for text in texts)
    printed = max(word(number_text(value, style.commas), size).width for value in table.series[0].values)
    right = page.right - (max(printed + 4, room / 2) if style.printed else room / 2)
    bottom = page.bottom - size * 1.2 - page.pad
    axes = Axes(left, page.top, right, bottom, (bottom - page.top) / len(table.categories), True, ticks[-1])
    for place, name in enumerate(table.categories):
        page.canvas.text(left - page.pad * 0.7, axes.slot(place), name, size, style.ink, "rm")
    crowded = room + 4 > (right - left) / (len(ticks) - 1)
    for number, (tick, text) in enumerate(zip(ticks, texts, strict=True)):
        x = axes.across(tick)
        if style.grid and tick:
            page.canvas.straight((x, axes.top), (x, bottom), style.grid_colour)
        if not (crowded and number % 2):
            page.canvas.text(x, bottom + page.pad * 0.7, text, size, style.ink, "mt")
    return axes


def _value_strip(page: Page, ticks: Sequence[Decimal]) -> tuple[float, list[str]]:
    """Left end of the plot, after the words of the ticks, and these."""
    texts = page.tick_texts(ticks)
    return page.left + max(word(text, page.font).width for text in texts) + page.pad, texts


def _headroom(page: Page, texts: Sequence[str]) -> float:
    """Pixels over the highest tick, for a value printed above the highest mark."""
    if not page.style.printed:
        return page.pad
    return max(page.font * 1.3, word(texts[-1], page.font).width + page.font * 0.5)


def _value_ticks(page: Page, axes: Axes, ticks: Sequence[Decimal], texts: Sequence[str]) -> None:
    for tick, text in zip(ticks, texts, strict=True):
        y = axes.height(tick)
        if page.style.grid and tick:
            page.canvas.straight((axes.left, y), (axes.right, y), page.style.grid_colour)
        page.canvas.text(axes.left - page.pad * 0.6, y, text, page.font, page.style.ink, "rm")
