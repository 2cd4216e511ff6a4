"""Charts drawn on the fly, with questions about them.

One real example::

    source = SyntheticCharts(1000, "train", charts=["pie"], questions=["sum"])
    source.example(SampleKey(epoch=0, index=0)).answer                       # "45"
"""

from __future__ import annotations

from collections.abc import Sequence

from datamodules.chart.data import CHART_KINDS, sample_table
from datamodules.chart.drawing import draw_chart
from datamodules.chart.questions import QUESTION_KINDS, ask
from datamodules.chart.style import sample_style
from datamodules.sources.splits import check_split, pick_prompt, sample_rng
from smmd_lightning.types import NumericExample, SampleKey

PROMPTS = ("{question}\nAnswer with a single word or number.",)
_ONE_ROW = {"pie", "vertical_bar", "horizontal_bar"}


def check_prompts(prompts: Sequence[str]) -> tuple[str, ...]:
    """Returns the wordings around a question.

    Raises:
        ValueError: One has no place for the question.
    """
    for prompt in prompts:
        if "{question}" not in prompt:
            raise ValueError(f"each of prompts needs '{{question}}' where the question goes, got {prompt!r}")
    return tuple(prompts)


class SyntheticCharts:
    """Drawn charts with questions about them.

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`; outside `train` the samples are the same each epoch.
        image_size: Side of the picture in pixels, or (width, height).
        seed: Seed of numbers, looks and questions.
        charts: Kinds of charts, equally likely.
        questions: Kinds of questions, equally likely.
        printed_share: Share of charts that print their values (scatter charts never do).
        prompts: Wordings around the question, with `{question}` in them; one is chosen a sample. Where the picture
            alone says what is asked (only `maximum`, or only `minimum`, of bars or slices in one row), they may do
            without: "How large is the largest slice?".

    Raises:
        ValueError: A setting is out of range.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        image_size: int | tuple[int, int] = 336,
        seed: int = 0,
        charts: Sequence[str] = CHART_KINDS,
        questions: Sequence[str] = QUESTION_KINDS,
        printed_share: float = 0.5,
        prompts: Sequence[str] | None = None,
    ) -> None:
        if size < 1 or seed < 0 or not 0 <= printed_share <= 1:
            raise ValueError(
                "size must be at least 1, seed not negative and printed_share from 0 to 1, "
                f"got {size}, {seed} and {printed_share}"
            )
        for name, given, known in (("charts", charts, CHART_KINDS), ("questions", questions, QUESTION_KINDS)):
            if not given or set(given) - set(known):
                raise ValueError(f"{name} must be some of {known}, got {tuple(given)!r}")
        self.size, self.image_size, self.seed = size, image_size, seed
        self.split = check_split(split)
        self.charts, self.questions, self.printed_share = tuple(charts), tuple(questions), printed_share
        told_by_picture = self.questions in (("maximum",), ("minimum",)) and set(charts) <= _ONE_ROW
        self.prompts = tuple(prompts) if prompts and told_by_picture else check_prompts(prompts or PROMPTS)

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample."""
        rng = sample_rng(self.seed, self.split, key)
        kind = self.charts[int(rng.integers(len(self.charts)))]
        printed = kind != "scatter" and rng.random() < self.printed_share
        table = sample_table(rng, kind, printed)
        style = sample_style(rng, table, kind, printed)
        question = ask(table, rng, self.questions)
        training = self.split == "train"
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if training else f"{self.split}-{key.index}",
            prompt=pick_prompt(self.prompts, rng).replace("{question}", question.text),
            answer=question.answer,
            images=(draw_chart(table, style, self.image_size),),
            meta={"task": "chart", "kind": question.kind, "chart": kind, "printed": printed, "unit": table.unit},
        )
