"""Small plots as SVG text: axes, lines, points, bars, bands, cells.

Unusual: colours are CSS variables of the page (`--series-0` …), so that a plot follows the light and the dark scheme;
and every text is escaped here, so that callers pass what they have.

One real example::

    plot = Plot("Loss", Axis.over([0, 100], "step"), Axis.over([0.1, 2.0], "CE", log=True))
    plot.line([(0, 2.0), (50, 0.5), (100, 0.1)], "train", series=0)
    svg = plot.render()
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 24, 34


def number(value: float) -> str:
    """Writes a number as a tick or a tile shows it.

    >>> [number(value) for value in (0.0, 0.12345, 12.0, 12345.0, 3e9, 2e-5)]
    ['0', '0.123', '12', '12,345', '3e+09', '2e-05']
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers in [low, high], about `count` of them: steps of 1, 2 or 5 times a power of ten.

    >>> nice_ticks(0, 97)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    rough = (high - low) / max(count, 1)
    if rough <= 0 or not math.isfinite(rough):
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


@dataclass(frozen=True)
class Axis:
    """One axis: range, label and ticks.

    Attributes:
        low: Value at its start.
        high: Value at its end, above `low`.
        label: What it shows.
        ticks: (value, text) pairs.
        log: Whether it is logarithmic; `low` is above 0 then.
    """

    low: float
    high: float
    label: str = ""
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False

    @classmethod
    def over(cls, values: Iterable[float], label: str = "", log: bool = False, zero: bool = False) -> Axis:
        """Makes the axis that shows all finite values; `zero` makes it start at 0, `log` needs positive ones."""
        known = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [1.0]
        low, high = min(known), max(known)
        if zero and not log:
            low, high = min(low, 0.0), max(high, 0.0)
        if log:
            low, high = (low, high) if high / low > 1.5 else (low / 2, high * 2)
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            steps = (1,) if len(powers) > 3 else (1, 2, 5)
            places = [factor * 10.0**power for power in powers for factor in steps]
            places = [place for place in places if low <= place <= high]
            skip = 1 + (len(places) - 1) // 6
            return cls(low, high, label, tuple((place, number(place)) for place in places[::skip]), True)
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        margin = (high - low) * 0.04
        low, high = (low if zero and low == 0 else low - margin), high + margin
        return cls(low, high, label, tuple((place, number(place)) for place in nice_ticks(low, high)))

    @classmethod
    def share(cls, label: str = "") -> Axis:
        """Makes the axis of shares, 0 to 100 %."""
        return cls(0.0, 1.0, label, tuple((tick / 4, f"{25 * tick} %") for tick in range(5)))

    def place(self, value: float) -> float:
        """Where a value lies, 0 at the start and 1 at the end; values outside lie at the nearer end."""
        if math.isnan(value):
            return 0.0
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Plot:
    """A plot under construction; `render` gives the SVG.

    Args:
        title: Heading, also what a screen reader says.
        x: Axis to the right.
        y: Axis upwards.
        width: Size of the drawing, in the units of its texts.
        height: Size of the drawing.
    """

    def __init__(self, title: str, x: Axis, y: Axis, width: int = WIDTH, height: int = HEIGHT) -> None:
        self.title, self.x, self.y, self.width, self.height = title, x, y, width, height
        self._marks: list[str] = []
        self._names: list[tuple[str, int]] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the data lies in the drawing."""
        right = LEFT + self.x.place(x) * (self.width - LEFT - RIGHT)
        return right, self.height - BOTTOM - self.y.place(y) * (self.height - TOP - BOTTOM)

    def line(self, points: Sequence[tuple[float, float]], name: str = "", series: int = 0, dots: bool = False) -> None:
        """Draws a line; `name` goes into the legend."""
        places = [self.at(x, y) for x, y in points if math.isfinite(y)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        self._marks.append(f'<polyline class="line" style="stroke:var(--series-{series})" points="{path}"/>')
        if dots or len(places) == 1:
            self.dots(points, series=series, radius=2.5)
        if name:
            self.name(name, series)

    def band(self, points: Sequence[tuple[float, float, float]], series: int = 0) -> None:
        """Fills between (x, low, high)."""
        edge = [self.at(x, low) for x, low, _ in points] + [self.at(x, high) for x, _, high in reversed(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
        self._marks.append(f'<polygon class="band" style="fill:var(--series-{series})" points="{path}"/>')

    def dots(
        self,
        points: Sequence[tuple[float, float]],
        hints: Sequence[str] | None = None,
        series: int = 0,
        radius: float = 3,
    ) -> None:
        """Draws points, each with a hint that shows under the pointer."""
        for place, (x, y) in enumerate(points):
            right, up = self.at(x, y)
            hint = f"<title>{escape(hints[place])}</title>" if hints else ""
            self._marks.append(
                f'<circle class="dot" style="fill:var(--series-{series})" cx="{right:.1f}" cy="{up:.1f}" r="{radius}">'
                f"{hint}</circle>"
            )

    def bar(
        self,
        left: float,
        right: float,
        value: float,
        hint: str,
        text: str = "",
        series: int = 0,
        opens: tuple[str, Sequence[int]] | None = None,
    ) -> None:
        """Draws an upright bar from `left` to `right` on the x axis, `text` on top.

        Args:
            left: Where it starts.
            right: Where it ends.
            value: Its height.
            hint: What shows under the pointer.
            text: What stands on top.
            series: Its colour.
            opens: Name and row numbers of the answers that a click on it shows in the table of answers.
        """
        (x0, y0), (x1, y1) = self.at(left, self.y.low), self.at(right, value)
        self._marks.append(opening(*opens) if opens and opens[1] else "<g>")
        self._marks.append(
            f'<rect style="fill:var(--series-{series})" x="{x0 + 1:.1f}" y="{y1:.1f}" '
            f'width="{max(x1 - x0 - 2, 1):.1f}" height="{max(y0 - y1, 0):.1f}" rx="1.5">'
            f"<title>{escape(hint)}</title></rect>"
        )
        if text:
            middle = (x0 + x1) / 2
            self._marks.append(
                f'<text class="small" x="{middle:.1f}" y="{y1 - 3:.1f}" text-anchor="middle">{escape(text)}</text>'
            )
        self._marks.append("</g>")

    def name(self, name: str, series: int) -> None:
        """Puts a series into the legend."""
        self._names.append((name, series))

    def rule(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draws a dashed guide."""
        (x0, y0), (x1, y1) = self.at(*start), self.at(*end)
        self._marks.append(f'<line class="guide" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>')

    def render(self) -> str:
        """Returns the SVG."""
        bottom, right = self.height - BOTTOM, self.width - RIGHT
        parts = []
        for value, text in self.y.ticks:
            _, up = self.at(self.x.low, value)
            parts.append(f'<line class="grid" x1="{LEFT}" y1="{up:.1f}" x2="{right}" y2="{up:.1f}"/>')
            parts.append(f'<text x="{LEFT - 5}" y="{up + 3.5:.1f}" text-anchor="end">{escape(text)}</text>')
        for value, text in self.x.ticks:
            along, _ = self.at(value, self.y.low)
            parts.append(f'<text x="{along:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(text)}</text>')
        parts.append(f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>')
        middle = (LEFT + right) / 2
        parts.append(f'<text x="{middle}" y="{self.height - 4}" text-anchor="middle">{escape(self.x.label)}</text>')
        parts.append(f'<text x="2" y="12">{escape(self.y.label)}</text>')
        along = float(right)
        for name, series in reversed(self._names):
            along -= 6.2 * len(name) + 8
            parts.append(f'<text x="{along:.0f}" y="12">{escape(name)}</text>')
            parts.append(
                f'<line class="line" style="stroke:var(--series-{series})" x1="{along - 15:.0f}" y1="8.5" '
                f'x2="{along - 4:.0f}" y2="8.5"/>'
            )
            along -= 20
        return figure(self.title, "".join(parts + self._marks), self.width, self.height)


def opening(name: str, rows: Sequence[int]) -> str:
    """Returns the start of a group that opens answers in the table, by pointer or keyboard.

    Args:
        name: What the answers have in common.
        rows: Their row numbers in the prediction file.
    """
    listed = ",".join(str(row) for row in rows)
    return f'<g class="opens" tabindex="0" role="button" data-name="{escape(name)}" data-rows="{listed}">'


def figure(title: str, content: str, width: int, height: int, below: str = "") -> str:
    """Wraps SVG content in a figure with a heading that screen readers say as well, and HTML below it."""
    name = escape(title, quote=True)
    return (
        f'<figure><figcaption>{name}</figcaption><svg viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"{content}</svg>{below}</figure>"
    )
