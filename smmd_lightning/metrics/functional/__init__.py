"""Functional twins of the metrics: texts in, a dictionary of scalars out; and the rules they are made of."""

from smmd_lightning.metrics.functional.chart import chart_answers, relaxed_correct_official, relaxed_correct_robust
from smmd_lightning.metrics.functional.chartqapro import chartqapro_score
from smmd_lightning.metrics.functional.clock import circular_error_minutes, clock_readings
from smmd_lightning.metrics.functional.clockbench import judge_clockbench
from smmd_lightning.metrics.functional.its_about_time import judge_wild_clock
from smmd_lightning.metrics.functional.measurebench import judge_measurement
from smmd_lightning.metrics.functional.numeric import number_answers
from smmd_lightning.metrics.functional.same import relative_error
from smmd_lightning.metrics.functional.ticktock import judge_ticktock

__all__ = [
    "chart_answers",
    "chartqapro_score",
    "circular_error_minutes",
    "clock_readings",
    "judge_clockbench",
    "judge_measurement",
    "judge_ticktock",
    "judge_wild_clock",
    "number_answers",
    "relative_error",
    "relaxed_correct_official",
    "relaxed_correct_robust",
]
