"""Charts drawn on the fly, with questions about them.

One real example::

    source = DrawnCharts(charts=["pie"], questions=["sum"]).open("train")
    source.example(SampleKey(epoch=0, index=0)).answer                       # "45"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from datamodules.chart.data import CHART_KINDS, sample_table
from datamodules.chart.drawing import draw_chart
from datamodules.chart.questions import QUESTION_KINDS, ask
from datamodules.chart.style import sample_style
from datamodules.sources.origins import Drawn, DrawSample, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from smmd_lightning.types import NumericExample, SampleKey

PROMPTS = ("{question}\nAnswer with a single word or number.",)
"""The wording around a chart question where `prompts` is not set. A user of the trained model must ask the same way."""

_ONE_ROW = {"pie", "vertical_bar", "horizontal_bar"}


@dataclass
class DrawnCharts(Drawn):
    """Bar, line, pie and scatter charts drawn on the fly, with questions whose answers are exact.

    Where the picture alone says what is asked (only `maximum`, or only `minimum`, of bars or slices in one row), the
    data module's `prompts` may do without `{question}`: "How large is the largest slice?".

    Attributes:
        image_size: Side of the picture in pixels, or (width, height).
        charts: Kinds of charts, equally likely.
        questions: Kinds of questions, equally likely.
        printed_share: Share of charts that print their values (scatter charts never do).

    Raises:
        ValueError: A setting is out of range.
    """

    image_size: int | tuple[int, int] = 336
    charts: Sequence[str] = CHART_KINDS
    questions: Sequence[str] = QUESTION_KINDS
    printed_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.printed_share <= 1:
            raise ValueError(f"printed_share must lie between 0 and 1, got {self.printed_share}")
        for name, known in (("charts", CHART_KINDS), ("questions", QUESTION_KINDS)):
            given = getattr(self, name)
            if not given or set(given) - set(known):
                raise ValueError(f"{name} must be some of {known}, got {tuple(given)!r}")

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws a chart and asks about it."""
        told_by_picture = tuple(self.questions) in (("maximum",), ("minimum",)) and set(self.charts) <= _ONE_ROW
        wordings = tuple(prompts) if prompts and told_by_picture else check_prompts(prompts or PROMPTS, "question")
        return partial(self._draw, prompts=wordings)

    def _draw(self, rng: np.random.Generator, key: SampleKey, *, prompts: Sequence[str]) -> NumericExample:
        kind = self.charts[int(rng.integers(len(self.charts)))]
        printed = kind != "scatter" and rng.random() < self.printed_share
        table = sample_table(rng, kind, printed)
        style = sample_style(rng, table, kind, printed)
        question = ask(table, rng, self.questions)
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng).replace("{question}", question.text),
            answer=question.answer,
            images=(draw_chart(table, style, self.image_size),),
            meta={"task": "chart", "kind": question.kind, "chart": kind, "printed": printed, "unit": table.unit},
        )
