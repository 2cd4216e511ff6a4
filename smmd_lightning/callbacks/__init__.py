"""Callbacks that every run gets from the command line."""

from smmd_lightning.callbacks.best_and_last import BestAndLast
from smmd_lightning.callbacks.guard import Guard
from smmd_lightning.callbacks.preemption import Preemption
from smmd_lightning.callbacks.progress import LineProgress, TerminalProgress
from smmd_lightning.callbacks.results import ResultsWriter
from smmd_lightning.callbacks.run_folder import RunFolder
from smmd_lightning.callbacks.run_lock import RunLock
from smmd_lightning.callbacks.sample_gallery import SampleGallery
from smmd_lightning.callbacks.stopping_early import StoppingEarly
from smmd_lightning.callbacks.summary import StartSummary
from smmd_lightning.callbacks.throughput import Throughput

__all__ = [
    "BestAndLast",
    "Guard",
    "LineProgress",
    "Preemption",
    "ResultsWriter",
    "RunFolder",
    "RunLock",
    "SampleGallery",
    "StartSummary",
    "StoppingEarly",
    "TerminalProgress",
    "Throughput",
]
