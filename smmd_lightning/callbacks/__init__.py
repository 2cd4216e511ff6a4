"""Callbacks that every run gets from the command line."""

from smmd_lightning.callbacks.checkpoints import BestAndLast
from smmd_lightning.callbacks.preemption import Preemption
from smmd_lightning.callbacks.results import ResultsWriter
from smmd_lightning.callbacks.run_folder import RunFolder
from smmd_lightning.callbacks.throughput import Throughput

__all__ = ["BestAndLast", "Preemption", "ResultsWriter", "RunFolder", "Throughput"]
