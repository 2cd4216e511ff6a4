"""Clocks to read: drawn on the fly, from files, or from the hub."""

from datamodules.clock.drawn import DrawnClocks
from datamodules.clock.module import ClockDataModule
from datamodules.clock.tables import ClockFiles, ClockHub

__all__ = ["ClockDataModule", "ClockFiles", "ClockHub", "DrawnClocks"]
