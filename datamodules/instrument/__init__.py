"""Instruments to read: gauges, meters, scales, thermometers, rulers, counters and clocks."""

from datamodules.instrument.drawn import DrawnInstruments
from datamodules.instrument.module import InstrumentDataModule

__all__ = ["DrawnInstruments", "InstrumentDataModule"]
