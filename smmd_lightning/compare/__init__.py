"""Comparing losses: tasks x losses x seeds, each a run of its own, and a report that says how sure it is."""

from smmd_lightning.compare.grid import Grid, LossChoice, Sweep, TaskChoice, load_grid
from smmd_lightning.compare.planning import PlannedRun

__all__ = ["Grid", "LossChoice", "PlannedRun", "Sweep", "TaskChoice", "load_grid"]
