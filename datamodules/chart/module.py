"""Charts with questions: drawn on the fly, from files in ChartQA's format and others, or from the hub.

One real example, in YAML, ChartQA as it is published::

    data:
      class_path: datamodules.ChartDataModule
      init_args:
        charts:
          class_path: datamodules.ChartFiles
          init_args: {train: ChartQA/train, val: ChartQA/val, test: ChartQA/test}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.chart.drawn import DrawnCharts
from datamodules.sources.origins import Samples, Split
from smmd_lightning.types import Source


class ChartDataModule(NumericDataModule):
    """Questions about charts.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        charts: Where the charts come from. None: drawn.
        prompts: Wordings around the question, with `{question}` in them; one is chosen per sample. Charts drawn with
            one question that the picture settles may do without, see `DrawnCharts`. None: a plain one.
        **common: See `NumericDataModule`.
    """

    def __init__(
        self,
        processor: str,
        charts: Samples | None = None,
        prompts: Sequence[str] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(processor, **common)
        self.charts = charts or DrawnCharts()
        self.prompts = prompts

    def source(self, split: Split) -> Source:
        """Returns the samples of a split."""
        return self.charts.open(split, seed=self.seed, prompts=self.prompts)
