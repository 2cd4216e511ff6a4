"""How a chart looks: everything that is not in its numbers.

One real example::

    style = sample_style(np.random.default_rng(0), table, "line", printed=False)
    style.legend, style.markers, style.grid                  # ('right', True, True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamodules.chart.canvas import Colour
from datamodules.chart.data import ChartTable
from datamodules.sources.dice import Dice

PALETTES: tuple[tuple[Colour, ...], ...] = (
    ((31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75)),
    ((68, 119, 170), (238, 102, 119), (34, 136, 51), (204, 187, 68), (102, 204, 238), (170, 51, 119)),
    ((0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0), (204, 121, 167), (86, 180, 233)),
    ((47, 75, 124), (212, 80, 135), (255, 166, 0), (102, 81, 145), (249, 93, 106), (0, 133, 131)),
    ((38, 70, 83), (231, 111, 81), (42, 157, 143), (233, 196, 106), (120, 60, 110), (141, 153, 174)),
)


@dataclass(frozen=True)
class ChartStyle:
    """Choices that make a chart's looks.

    Attributes:
        kind: One of `CHART_KINDS`.
        palette: Colours of series, or of categories where `colourful`.
        background: Colour of the paper.
        ink: Colour of text and axes.
        grid_colour: Colour of grid lines.
        font_share: Font size in image heights; titles are a third larger.
        grid: Whether lines mark the ticks.
        legend: `none`, `top`, `bottom` or `right`.
        printed: Whether values are written beside the marks.
        axis_titles: Whether the axes are named; otherwise the unit stands in the chart's title.
        commas: Whether thousands are separated.
        colourful: Whether each category of a single series has its own colour.
        bar_share: Part of a slot that its bars fill.
        line_share: Line width in image heights.
        markers: Whether points of a line are marked.
        ring: Whether a pie has a hole.
        tick_count: About how many ticks the value axis has.
        centred_title: Whether the title is centred.
    """

    kind: str
    palette: tuple[Colour, ...]
    background: Colour
    ink: Colour
    grid_colour: Colour
    font_share: float
    grid: bool
    legend: str
    printed: bool
    axis_titles: bool
    commas: bool
    colourful: bool
    bar_share: float
    line_share: float
    markers: bool
    ring: bool
    tick_count: int
    centred_title: bool


def sample_style(rng: np.random.Generator, table: ChartTable, kind: str, printed: bool) -> ChartStyle:
    """Samples the looks of a chart.

    Args:
        rng: Where the randomness comes from; it is advanced.
        table: What is shown; several series always get a legend, and so does a pie.
        kind: One of `CHART_KINDS`.
        printed: Whether values are written beside the marks.

    Returns:
        A legible style: dark ink on light paper or the other way round, series told apart by colour.
    """
    dice = Dice(rng)
    dark = dice.chance(0.12)
    paper = dice.pick(((24, 26, 32), (34, 34, 40))) if dark else dice.pick(
        ((255, 255, 255), (255, 255, 255), (250, 248, 244), (244, 247, 250), (240, 240, 240))
    )  # fmt: skip
    palette = dice.pick(PALETTES)
    if dark:
        palette = tuple((90 + r * 165 // 255, 90 + g * 165 // 255, 90 + b * 165 // 255) for r, g, b in palette)
    start = dice.whole(0, len(palette) - 1)
    needs_legend = len(table.series) > 1 or kind == "pie"
    return ChartStyle(
        kind=kind,
        palette=palette[start:] + palette[:start],
        background=paper,
        ink=(235, 235, 235) if dark else dice.pick(((20, 20, 20), (60, 60, 60), (40, 50, 70))),
        grid_colour=(70, 72, 78) if dark else (218, 218, 218),
        font_share=dice.between(0.033, 0.039),
        grid=dice.chance(0.75),
        legend=dice.pick(("top", "bottom", "right")) if needs_legend else "none",
        printed=printed,
        axis_titles=dice.chance(0.7) or kind == "scatter",
        commas=dice.chance(0.5),
        colourful=dice.chance(0.2),
        bar_share=dice.between(0.55, 0.85),
        line_share=dice.between(0.005, 0.009),
        markers=dice.chance(0.6),
        ring=dice.chance(0.3),
        tick_count=dice.whole(4, 6),
        centred_title=dice.chance(0.7),
    )
