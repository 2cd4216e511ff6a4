"""Metrics over generated answers: torchmetrics classes, and their functional twins in `metrics.functional`.

Unusual: a metric takes the text a model wrote and the example it answers, and does the parsing itself, so a text
without any number or time is a miss that counts. All are right under DDP with unequal shards, an empty one included.

One real example::

    >>> from smmd_lightning.types import NumericExample
    >>> metric = metrics_for("clock")
    >>> metric.update(["1:00", "no idea"], [NumericExample("a", "", "12:59"), NumericExample("b", "", "03:05")])
    >>> values = metric.compute()
    >>> values["median_error_minutes"].item(), values["parse_failures"].item()
    (180.5, 0.5)
"""

from smmd_lightning.metrics.base import TASKS, AnswerMetrics
from smmd_lightning.metrics.by_task import MetricsByTask
from smmd_lightning.metrics.chart import ChartMetrics
from smmd_lightning.metrics.clock import ClockMetrics
from smmd_lightning.metrics.distribution import DistributionMetrics
from smmd_lightning.metrics.facts import MetricFacts, ToleranceCurve
from smmd_lightning.metrics.instrument import InstrumentMetrics
from smmd_lightning.metrics.numeric import MathMetrics, NumberMetrics
from smmd_lightning.metrics.published import (
    ChartQAProMetrics,
    ClockBenchMetrics,
    ItsAboutTimeMetrics,
    MeasureBenchMetrics,
    TickTockMetrics,
)
from smmd_lightning.metrics.registry import larger_is_better, metric_facts, metrics_for
from smmd_lightning.metrics.score import Score

__all__ = [
    "TASKS",
    "AnswerMetrics",
    "ChartMetrics",
    "ChartQAProMetrics",
    "ClockBenchMetrics",
    "ClockMetrics",
    "DistributionMetrics",
    "InstrumentMetrics",
    "ItsAboutTimeMetrics",
    "MathMetrics",
    "MeasureBenchMetrics",
    "MetricFacts",
    "MetricsByTask",
    "NumberMetrics",
    "Score",
    "TickTockMetrics",
    "ToleranceCurve",
    "larger_is_better",
    "metric_facts",
    "metrics_for",
]
