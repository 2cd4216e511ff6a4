"""Draws bar, line, pie and scatter charts with Pillow alone, a few milliseconds each.

What is unusual: no plotting library, so that charts drawn on the fly never keep a training waiting.

One real example::

    rng = np.random.default_rng(0)
    table = sample_table(rng, "grouped_bar", printed=False)
    style = sample_style(rng, table, "grouped_bar", printed=False)
    draw_chart(table, style, 336)                           # <PIL.Image.Image mode=RGB size=336x336>
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from PIL import Image

from datamodules.chart.axes import lying_axes, numeric_axes, upright_axes
from datamodules.chart.canvas import Colour, word
from datamodules.chart.data import ChartTable
from datamodules.chart.style import ChartStyle
from datamodules.chart.surround import Page, number_text


def draw_chart(table: ChartTable, style: ChartStyle, size: int | tuple[int, int] = 336) -> Image.Image:
    """Draws a chart.

    Args:
        table: What is shown.
        style: How, and as what kind of chart.
        size: Side of a square image, or (width, height), in pixels.

    Returns:
        An RGB image; the same for the same arguments, pixel for pixel.

    Raises:
        ValueError: The size is below 128 pixels, or the kind unknown.
    """
    width, height = (size, size) if isinstance(size, int) else size
    if min(width, height) < 128:
        raise ValueError(f"a chart needs a size of at least 128 pixels, got {width}x{height}")
    if style.kind not in _DRAWERS:
        raise ValueError(f"chart kind must be one of {sorted(_DRAWERS)}, got {style.kind!r}")
    page = Page(table, style, width, height)
    page.title()
    names = table.categories if style.kind == "pie" else tuple(series.name for series in table.series)
    page.legend(names, style.palette)
    _DRAWERS[style.kind](page)
    return page.canvas.finish()


def _colour(style: ChartStyle, table: ChartTable, series: int, category: int) -> Colour:
    place = category if style.colourful and len(table.series) == 1 else series
    return style.palette[place % len(style.palette)]


def _readable_on(colour: Colour) -> Colour:
    """Black or white, whichever stands out more."""
    light = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    return (0, 0, 0) if light > 140 else (255, 255, 255)


def _print_above(page: Page, x: float, y: float, value: Decimal, room: float) -> None:
    """Writes a value over a mark, turned where it is wider than its room."""
    text = number_text(value, page.style.commas)
    size = page.font
    turned = word(text, size).width > room
    page.canvas.text(x, y - 2, text, size, page.style.ink, "mb", turned=turned)


def _bars(page: Page) -> None:
    table, style = page.table, page.style
    axes = upright_axes(page, max(value for series in table.series for value in series.values))
    share = style.bar_share / len(table.series)
    for place in range(len(table.categories)):
        middle = axes.slot(place)
        for number, series in enumerate(table.series):
            left = middle - axes.step * style.bar_share / 2 + number * axes.step * share
            width, top = axes.step * share, axes.height(series.values[place])
            page.canvas.rectangle(left, top, left + width * 0.96, axes.bottom, _colour(style, table, number, place))
            if style.printed:
                _print_above(page, left + width / 2, top, series.values[place], width)
    axes.baseline(page)


def _stacks(page: Page) -> None:
    table, style = page.table, page.style
    totals = [sum(column, Decimal(0)) for column in zip(*(series.values for series in table.series), strict=True)]
    axes = upright_axes(page, max(totals))
    for place in range(len(table.categories)):
        left, below = axes.slot(place) - axes.step * style.bar_share / 2, Decimal(0)
        for number, series in enumerate(table.series):
            colour, value = style.palette[number % len(style.palette)], series.values[place]
            bottom, top = axes.height(below), axes.height(below + value)
            page.canvas.rectangle(left, top, left + axes.step * style.bar_share, bottom, colour)
            if style.printed:
                text = number_text(value, style.commas)
                page.canvas.text(axes.slot(place), (top + bottom) / 2, text, page.font, _readable_on(colour), "mm")
            below += value
    axes.baseline(page)


def _lying_bars(page: Page) -> None:
    table, style = page.table, page.style
    values = table.series[0].values
    axes = lying_axes(page, max(values))
    for place, value in enumerate(values):
        top, right = axes.slot(place) - axes.step * style.bar_share / 2, axes.across(value)
        bottom = top + axes.step * style.bar_share
        page.canvas.rectangle(axes.left, top, right, bottom, _colour(style, table, 0, place))
        if style.printed:
            text = number_text(value, style.commas)
            page.canvas.text(right + 3, axes.slot(place), text, page.font, style.ink, "lm")
    axes.baseline(page)


def _lines(page: Page) -> None:
    table, style = page.table, page.style
    axes = upright_axes(page, max(value for series in table.series for value in series.values))
    axes.baseline(page)
    width = style.line_share * page.canvas.height
    for number, series in enumerate(table.series):
        colour = style.palette[number % len(style.palette)]
        points = [(axes.slot(place), axes.height(value)) for place, value in enumerate(series.values)]
        page.canvas.line(points, colour, width)
        for place, ((x, y), value) in enumerate(zip(points, series.values, strict=True)):
            if style.markers:
                page.canvas.disc(x, y, width * 1.6, colour)
            neighbours = series.values[max(0, place - 1) : place + 2]
            if style.printed and value == min(neighbours) and y + page.font * 1.6 < axes.bottom:
                text = number_text(value, style.commas)  # below a valley, where no line passes
                page.canvas.text(x, y + width * 1.6, text, page.font, style.ink, "mt")
            elif style.printed:
                _print_above(page, x, y - width, value, axes.step)


def _points(page: Page) -> None:
    table, style = page.table, page.style
    axes = numeric_axes(page, max(value for series in table.series for value in series.values))
    axes.baseline(page)
    radius = max(2.5, 0.011 * page.canvas.height)
    for number, series in enumerate(table.series):
        colour = style.palette[number % len(style.palette)]
        for name, value in zip(table.categories, series.values, strict=True):
            page.canvas.disc(axes.across(Decimal(name)), axes.height(value), radius, colour)


def _pie(page: Page) -> None:
    table, style, canvas = page.table, page.style, page.canvas
    radius = 0.47 * min(page.right - page.left, page.bottom - page.top)
    x, y = (page.left + page.right) / 2, (page.top + page.bottom) / 2
    values = table.series[0].values
    total, angle = sum(values, Decimal(0)), 0.0
    places = []
    for number, value in enumerate(values):
        colour, sweep = style.palette[number % len(style.palette)], float(value / total) * 360
        canvas.slice(x, y, radius, angle, angle + sweep, colour)
        places.append((math.radians(angle), math.radians(angle + sweep / 2), value, colour))
        angle += sweep
    for start, *_ in places:
        edge = (x + radius * math.sin(start), y - radius * math.cos(start))
        canvas.line([(x, y), edge], style.background, 1.0)
    if style.ring:
        canvas.disc(x, y, radius * 0.5, style.background)
    if style.printed:
        for _, middle, value, colour in places:
            place = (x + 0.76 * radius * math.sin(middle), y - 0.76 * radius * math.cos(middle))
            canvas.text(*place, f"{number_text(value)}%", page.font, _readable_on(colour), "mm")


_DRAWERS: dict[str, Callable[[Page], None]] = {
    "vertical_bar": _bars,
    "grouped_bar": _bars,
    "stacked_bar": _stacks,
    "horizontal_bar": _lying_bars,
    "line": _lines,
    "scatter": _points,
    "pie": _pie,
}
