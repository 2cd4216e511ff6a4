"""Charts with questions: drawn on the fly, from files, or from the hub."""

from datamodules.chart.drawn import DrawnCharts
from datamodules.chart.module import ChartDataModule
from datamodules.chart.tables import ChartFiles, ChartHub

__all__ = ["ChartDataModule", "ChartFiles", "ChartHub", "DrawnCharts"]
