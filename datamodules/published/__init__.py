"""Published benchmarks in the layouts that their authors distribute, asked with their prompts."""

from datamodules.published.layouts import BENCHMARKS
from datamodules.published.module import PublishedDataModule

__all__ = ["BENCHMARKS", "PublishedDataModule"]
