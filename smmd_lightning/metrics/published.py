"""The rules of published benchmarks as torchmetrics classes; each rule is a file of `metrics.functional`.

Unusual: every metric is the mean of a column over the answers for which it is defined, and nothing else, so a number
here can stand beside the benchmark's own.

One real example::

    >>> from smmd_lightning.types import NumericExample
    >>> metric = MeasureBenchMetrics()
    >>> facts = {"task": "measurebench", "intervals": [[4.2, 4.4]], "units": [["bar"]]}
    >>> metric.update(["Answer: 4.3 bar"], [NumericExample("a", "", "4.3 bar", meta=facts)])
    >>> metric.compute()["accuracy"].item()
    1.0
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from smmd_lightning.metrics.base import AnswerMetrics
from smmd_lightning.metrics.facts import MetricFacts
from smmd_lightning.metrics.functional import chartqapro, clockbench, its_about_time, measurebench, ticktock
from smmd_lightning.metrics.score import Judgement
from smmd_lightning.types import NumericExample


class PublishedMetrics(AnswerMetrics):
    """Base of the published rules: means of the columns of `rule`'s rows.

    Attributes:
        columns: Names of the metrics, one for each number in a row; NaN in a row is left out of the mean.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    headline: ClassVar[str] = "accuracy"
    facts: ClassVar[Mapping[str, MetricFacts]] = {"accuracy": MetricFacts()}
    by_kind: ClassVar[tuple[str, ...]] = ("accuracy",)
    tolerant_rule: ClassVar[str] = "by the published rule"

    @property
    def width(self) -> int:
        """C, the number of columns of a row."""
        return len(self.columns)

    @abstractmethod
    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer by the published rule."""

    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer.

        Raises:
            ValueError: The example lacks a fact that the rule needs.
        """
        try:
            return self.rule(prediction, example)
        except KeyError as error:
            raise ValueError(f"a question of {self.title} needs the fact {error} in its `meta`") from error

    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the mean of each column, over the answers for which it is defined; NaN of none."""
        return {name: torch.nanmean(table_NC[:, column]) for column, name in enumerate(self.columns)}

    def counted(self, name: str, table_NC: Tensor) -> int:
        """Returns how many answers a metric is defined for."""
        return int((~table_NC[:, self.columns.index(name)].isnan()).sum())


class MeasureBenchMetrics(PublishedMetrics):
    """MeasureBench: value inside an interval, unit named; `meta` holds `intervals` and `units`."""

    task: ClassVar[str] = "measurebench"
    title: ClassVar[str] = "MeasureBench"
    columns: ClassVar[tuple[str, ...]] = measurebench.COLUMNS
    tiles: ClassVar[tuple[str, ...]] = ("number_accuracy", "unit_accuracy", "number_error_rate")
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "number_accuracy": MetricFacts("max", "share", "Value inside the interval"),
        "unit_accuracy": MetricFacts("max", "share", "Right unit"),
        "number_error_rate": MetricFacts("min", "relative", "Distance from the interval"),
    }

    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one reading."""
        return measurebench.judge_measurement(prediction, example.meta["intervals"], example.meta["units"])


class ChartQAProMetrics(PublishedMetrics):
    """ChartQAPro: relaxed by element, years exact, words by ANLS; `meta` holds `years` and as `kind` the type."""

    task: ClassVar[str] = "chartqapro"
    title: ClassVar[str] = "ChartQAPro"
    columns: ClassVar[tuple[str, ...]] = chartqapro.COLUMNS
    tiles: ClassVar[tuple[str, ...]] = ("accuracy_as_described",)
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "accuracy_as_described": MetricFacts("max", "share", "Accuracy, options and facts exact"),
    }

    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer."""
        meta = example.meta
        return chartqapro.judge_chartqapro(prediction, example.answer, meta["years"], str(meta["kind"]))


class ItsAboutTimeMetrics(PublishedMetrics):
    """It's About Time: the whole time within a minute, the hour exactly, the minute within one."""

    task: ClassVar[str] = "its_about_time"
    title: ClassVar[str] = "It's About Time"
    columns: ClassVar[tuple[str, ...]] = its_about_time.COLUMNS
    tiles: ClassVar[tuple[str, ...]] = ("hour_accuracy", "minute_accuracy", "parse_failures")
    facts: ClassVar[Mapping[str, MetricFacts]] = {"hour_accuracy": MetricFacts(), "minute_accuracy": MetricFacts()}

    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one reading."""
        return its_about_time.judge_wild_clock(prediction, example.answer)


class TickTockMetrics(PublishedMetrics):
    """TickTockVQA: hour and minute exactly, and readings with the hands exchanged."""

    task: ClassVar[str] = "ticktockvqa"
    title: ClassVar[str] = "TickTockVQA"
    columns: ClassVar[tuple[str, ...]] = ticktock.COLUMNS
    tiles: ClassVar[tuple[str, ...]] = ("hour_accuracy", "minute_accuracy", "swapped_hands", "parse_failures")
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "hour_accuracy": MetricFacts(),
        "minute_accuracy": MetricFacts(),
        "swapped_hands": MetricFacts("min", "share", "Hands exchanged"),
        "accuracy_or_swapped": MetricFacts("max", "share", "Right, or hands exchanged"),
    }

    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one reading."""
        return ticktock.judge_ticktock(prediction, example.answer)


class ClockBenchMetrics(PublishedMetrics):
    """ClockBench: answers in JSON, invalid clocks included; `meta["truth"]` holds the right object."""

    task: ClassVar[str] = "clockbench"
    title: ClassVar[str] = "ClockBench"
    columns: ClassVar[tuple[str, ...]] = clockbench.COLUMNS
    tiles: ClassVar[tuple[str, ...]] = ("accuracy_valid", "accuracy_invalid", "said_invalid", "parse_failures")
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "accuracy_valid": MetricFacts("max", "share", "Accuracy, clocks that can be"),
        "accuracy_invalid": MetricFacts("max", "share", "Accuracy, clocks that cannot be"),
        "said_invalid": MetricFacts("min", "share", "Called invalid"),
    }

    def rule(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer."""
        return clockbench.judge_clockbench(prediction, example.meta["truth"])
