"""Functional twins of the metrics: texts in, a dictionary of scalars out; and the rules they are made of."""

from smmd_lightning.metrics.functional.chart import chart_answers, relaxed_correct_official, relaxed_correct_robust
from smmd_lightning.metrics.functional.clock import circular_error_minutes, clock_readings
from smmd_lightning.metrics.functional.numeric import number_answers
from smmd_lightning.metrics.functional.same import relative_error

__all__ = [
    "chart_answers",
    "circular_error_minutes",
    "clock_readings",
    "number_answers",
    "relative_error",
    "relaxed_correct_official",
    "relaxed_correct_robust",
]
