"""Charts: the numbers are read back from the pixels, and no word covers another or leaves the picture."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from datamodules.chart import canvas as chart_canvas
from datamodules.chart.canvas import Canvas, word, wrapped
from datamodules.chart.data import CHART_KINDS, ChartTable, Series, sample_table
from datamodules.chart.drawing import draw_chart
from datamodules.chart.style import PALETTES, ChartStyle, sample_style
from datamodules.chart.surround import axis_ticks, number_text

RED, GREEN, BLUE = (220, 30, 30), (30, 160, 30), (30, 30, 220)


def style(kind: str, **changes: object) -> ChartStyle:
    plain = ChartStyle(
        kind=kind,
        palette=(RED, GREEN, BLUE),
        background=(255, 255, 255),
        ink=(0, 0, 0),
        grid_colour=(210, 210, 210),
        font_share=0.035,
        grid=False,
        legend="none",
        printed=False,
        axis_titles=False,
        commas=False,
        colourful=False,
        bar_share=0.6,
        line_share=0.008,
        markers=True,
        ring=False,
        tick_count=4,
        centred_title=True,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def table(*columns: list[int], categories: tuple[str, ...] | None = None) -> ChartTable:
    names = categories or tuple("abcdefgh"[: len(columns[0])])
    series = tuple(Series(f"s{n}", tuple(map(Decimal, column))) for n, column in enumerate(columns))
    return ChartTable("Title", "output", "", "Letter", "for", names, series)


def mask(image: Image.Image, colour: tuple[int, int, int]) -> np.ndarray:
    return np.abs(np.asarray(image).astype(int) - colour).sum(-1) < 40


def runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Stretches of True, as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def test_upright_bars_are_as_high_as_their_values() -> None:
    values = [10, 40, 25, 5]
    ink = mask(draw_chart(table(values), style("vertical_bar"), 336), RED)
    bars = runs(ink.any(0))
    assert len(bars) == 4
    heights = [ink[:, first:last].any(1).sum() for first, last in bars]
    assert np.allclose(np.array(heights) / heights[1] * 40, values, atol=0.4)


def test_lying_bars_are_as_long_as_their_values() -> None:
    values = [10, 40, 25, 5]
    ink = mask(draw_chart(table(values), style("horizontal_bar"), 336), RED)
    lengths = [ink[first:last].any(0).sum() for first, last in runs(ink.any(1))]
    assert np.allclose(np.array(lengths) / lengths[1] * 40, values, atol=0.4)


def test_grouped_and_stacked_bars_keep_their_series() -> None:
    columns = [10, 40, 25], [30, 20, 35]
    for kind in ("grouped_bar", "stacked_bar"):
        image = draw_chart(table(*columns), style(kind), 336)
        scale = None
        for colour, values in ((RED, columns[0]), (GREEN, columns[1])):
            ink = mask(image, colour)
            heights = [ink[:, first:last].any(1).sum() for first, last in runs(ink.any(0))]
            scale = scale or heights[0] / values[0]
            assert np.allclose(np.array(heights) / scale, values, atol=0.8), kind
        tops = [np.flatnonzero(mask(image, colour).any(1)) for colour in (RED, GREEN)]
        assert (kind == "stacked_bar") == (tops[0].max() > tops[1].max()), "the first series lies at the bottom"


def test_slices_are_as_large_as_their_shares_and_start_at_twelve() -> None:
    image = draw_chart(table([50, 30, 20]), style("pie"), 336)
    areas = np.array([mask(image, colour).sum() for colour in (RED, GREEN, BLUE)])
    assert np.allclose(areas / areas.sum() * 100, [50, 30, 20], atol=0.7)
    whole = mask(image, RED) | mask(image, GREEN) | mask(image, BLUE)
    assert whole.sum() > 0.98 * np.pi / 4 * whole.any(0).sum() * whole.any(1).sum(), "the slices close the circle"
    assert mask(image, RED).any(0).nonzero()[0].min() >= 336 / 2 - 2, "the first half lies to the right"
    ring = draw_chart(table([50, 30, 20]), style("pie", ring=True), 336)
    assert 0.2 < mask(ring, RED).sum() / areas[0] < 0.8


def test_points_and_markers_lie_at_their_values() -> None:
    places, values = (0, 10, 40, 20), [8, 40, 16, 32]
    scatter = table(values, categories=tuple(map(str, places)))
    ink = mask(draw_chart(scatter, style("scatter"), 336), RED)
    line = mask(draw_chart(table(values), style("line", line_share=0.004, markers=True), 336), RED)
    discs = [np.nonzero(ink[:, first:last]) for first, last in runs(ink.any(0))]
    centres = sorted((first + x.mean(), y.mean()) for (first, _), (y, x) in zip(runs(ink.any(0)), discs, strict=True))
    xs, ys = np.array(centres).T
    assert np.allclose(np.polyfit(sorted(places), xs, 1, full=True)[1], 0, atol=1)
    ordered = [value for _, value in sorted(zip(places, values, strict=True))]
    slope, at_zero = np.polyfit(ordered, ys, 1)
    assert np.abs(slope * np.array(ordered) + at_zero - ys).max() < 0.5
    assert slope < 0
    top = np.flatnonzero(line.any(1)).min()
    assert line[top].nonzero()[0].mean() < 336 * 0.5, "the highest point is the second of four"


@pytest.mark.parametrize("kind", CHART_KINDS)
@pytest.mark.parametrize("size", [224, 336, (480, 300)])
def test_no_word_covers_another_or_leaves_the_picture(
    kind: str, size: int | tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    canvases: list[Canvas] = []
    finish = Canvas.finish

    def spy(canvas: Canvas) -> Image.Image:
        canvases.append(canvas)
        return finish(canvas)

    monkeypatch.setattr(chart_canvas.Canvas, "finish", spy)
    for seed in range(40):
        rng = np.random.default_rng([seed, CHART_KINDS.index(kind)])
        printed = kind != "scatter" and seed % 2 == 0
        made = sample_table(rng, kind, printed)
        image = draw_chart(made, sample_style(rng, made, kind, printed), size)
        assert image.mode == "RGB"
        assert image.size == (size if isinstance(size, tuple) else (size, size))
        boxes = []
        for x, y, text, height, _, anchor, turned in canvases.pop()._words:
            wide, high = word(text, height).size[:: -1 if turned else 1]
            left = x - wide * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor[0]]
            top = y - high * {"t": 0.0, "m": 0.5, "b": 1.0}[anchor[1]]
            assert left > -1
            assert top > -1
            assert left + wide < image.width + 1
            assert top + high < image.height + 1
            for other in boxes:
                across = min(left + wide, other[2]) - max(left, other[0])
                down = min(top + high, other[3]) - max(top, other[1])
                assert across <= 2 or down <= 3, f"{text!r} covers {other[4]!r} (seed {seed})"
            boxes.append((left, top, left + wide, top + high, text))


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_charts_are_functions_of_their_seed(kind: str) -> None:
    def draw(seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        made = sample_table(rng, kind)
        return draw_chart(made, sample_style(rng, made, kind, printed=False), 200).tobytes()

    first = draw(1)
    word.cache_clear()
    assert draw(1) == first
    assert draw(2) != first


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_tables_are_readable_from_the_axis(kind: str) -> None:
    for seed in range(60):
        made = sample_table(np.random.default_rng(seed), kind)
        values = [value for series in made.series for value in series.values]
        assert min(values) > 0
        assert len(set(made.categories)) == len(made.categories)
        assert len({series.name for series in made.series}) == len(made.series)
        if kind == "pie":
            assert sum(values) == 100
            assert all(value % 5 == 0 for value in values)
            continue
        high = max(axis_ticks(Decimal(0), max(values), 5)) if kind != "stacked_bar" else max(values)
        lead = max(values).scaleb(-max(values).adjusted())
        grain = {1: "0.02", 2: "0.05", 5: "0.1"}
        possible = [Decimal(g).scaleb(max(values).adjusted() + shift) for g in grain.values() for shift in (-1, 0)]
        assert any(all(value % step == 0 for value in values) for step in possible), (high, lead, values)
        if kind == "scatter" and len(made.series) == 2:
            assert all(a != b for a, b in zip(*(series.values for series in made.series), strict=True))


def test_colours_of_a_chart_are_told_apart() -> None:
    for palette in PALETTES:
        for place, colour in enumerate(palette):
            for other in palette[:place]:
                assert np.abs(np.subtract(colour, other)).sum() > 70


@settings(max_examples=200, deadline=None)
@given(
    st.decimals(min_value=-(10**6), max_value=10**6, places=3),
    st.decimals(min_value="0.001", max_value=10**6, places=3),
    st.integers(1, 12),
)
def test_ticks_span_the_range_in_equal_round_steps(low: Decimal, span: Decimal, count: int) -> None:
    ticks = axis_ticks(low, low + span, count)
    steps = {after - before for before, after in itertools.pairwise(ticks)}
    assert ticks[0] <= low
    assert ticks[-1] >= low + span
    assert len(steps) == 1
    assert (digits := steps.pop().normalize().as_tuple().digits) in {(1,), (2,), (2, 5), (5,)}, digits
    assert len(ticks) <= count + 3


def test_numbers_are_written_plainly() -> None:
    written = [number_text(Decimal(text)) for text in ("1E+3", "0.50", "12", "-2.10", "100", "0")]
    assert written == ["1000", "0.5", "12", "-2.1", "100", "0"]
    assert number_text(Decimal("1234567.5"), commas=True) == "1,234,567.5"


def test_wrapping_keeps_every_word() -> None:
    text = "Share of respondents by department and age group"
    lines = wrapped(text, 14, 150)
    assert " ".join(lines) == text
    assert len(lines) > 1
    assert all(word(line, 14).width <= 150 for line in lines)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 128 pixels, got 64x64"):
        draw_chart(table([1, 2]), style("line"), 64)
    with pytest.raises(ValueError, match="chart kind must be one of"):
        draw_chart(table([1, 2]), style("radar"), 200)
    with pytest.raises(ValueError, match="chart kind must be one of"):
        sample_table(np.random.default_rng(0), "radar")
    with pytest.raises(ValueError, match="series 's0' has 2 values for 3 categories"):
        table([1, 2], categories=("a", "b", "c"))
    with pytest.raises(ValueError, match="low < high"):
        axis_ticks(Decimal(1), Decimal(1), 4)
