"""Clocks to read: drawn on the fly, from files, or from the hub."""

from datamodules.clock.module import ClockDataModule, ClockFiles, ClockHub, DrawnClocks

__all__ = ["ClockDataModule", "ClockFiles", "ClockHub", "DrawnClocks"]
