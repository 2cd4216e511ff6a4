"""Charts with questions: drawn on the fly, from files in ChartQA's format and others, or from the hub."""

from datamodules.chart.module import ChartDataModule, ChartFiles, ChartHub, DrawnCharts

__all__ = ["ChartDataModule", "ChartFiles", "ChartHub", "DrawnCharts"]
