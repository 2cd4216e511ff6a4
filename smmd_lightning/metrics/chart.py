"""Answers about charts as a torchmetrics class; the rules are in `metrics.functional.chart`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from smmd_lightning.answers import Decimals
from smmd_lightning.metrics.facts import MetricFacts
from smmd_lightning.metrics.functional.chart import COLUMNS, judge_chart, summarise_charts
from smmd_lightning.metrics.functional.numeric import TOLERANCES
from smmd_lightning.metrics.numeric import NumberMetrics
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample


class ChartMetrics(NumberMetrics):
    """Relaxed accuracy by the published and by a robust rule, beside the metrics of `NumberMetrics`.

    `compute` adds `relaxed_accuracy_official` and `relaxed_accuracy_robust`, over all and by question kind.

    Args:
        tolerances: Relative tolerances of the accuracy curve, 0.05 for 5 % of the truth.
        decimals: Which sign is the decimal sign: "auto", "point" or "comma"; an example's
            `meta["decimals"]` goes first.
        kwargs: Settings of `torchmetrics.Metric`.
    """

    task: ClassVar[str] = "chart"
    title: ClassVar[str] = "Charts"
    headline: ClassVar[str] = "relaxed_accuracy_official"
    tiles: ClassVar[tuple[str, ...]] = (
        "relaxed_accuracy_robust", "exact_match", "median_relative_error", "parse_failures",
    )  # fmt: skip
    unit: ClassVar[str] = "relative"
    facts: ClassVar[Mapping[str, MetricFacts]] = {name: MetricFacts() for name in COLUMNS}
    tolerant_rule: ClassVar[str] = "within 5 % (official rule)"
    by_kind: ClassVar[tuple[str, ...]] = ("exact_match", *COLUMNS)

    def __init__(self, tolerances: Sequence[float] = TOLERANCES, decimals: Decimals = "auto", **kwargs: Any) -> None:
        super().__init__(tolerances, decimals=decimals, **kwargs)

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(COLUMNS) + super().width

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer."""
        return judge_chart(prediction, example.answer, self.tolerances, example.meta.get("decimals", self.decimals))

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged answers."""
        return summarise_charts(table_NC, self.tolerances)

    def close_enough(self, table_NC: Tensor) -> Tensor:
        """Returns which answers pass the published rule."""
        return table_NC[:, COLUMNS.index("relaxed_accuracy_official")] > 0

    def per_unit(self, example: NumericExample) -> float:
        """Returns one over the size of the truth, so that errors are parts of it; 1 for a truth of 0."""
        truth = self.value_of(self.score("", example).truth)
        return 1 / abs(truth) if truth else 1.0
