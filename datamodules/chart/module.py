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
from dataclasses import dataclass, field
from typing import Any

from datamodules.base import NumericDataModule
from datamodules.chart.data import CHART_KINDS
from datamodules.chart.drawn import SyntheticCharts
from datamodules.chart.questions import QUESTION_KINDS
from datamodules.chart.tables import ChartColumns, FileCharts, HubCharts
from datamodules.sources.images import ImageLimits
from datamodules.sources.origins import Drawn, Files, Hub, Samples, Split
from smmd_lightning.types import Source


@dataclass
class DrawnCharts(Drawn):
    """Bar, line, pie and scatter charts drawn on the fly, with questions whose answers are exact.

    Attributes:
        image_size: Side of the picture in pixels, or (width, height).
        charts: Kinds of charts, equally likely.
        questions: Kinds of questions, equally likely.
        printed_share: Share of charts that print their values.
    """

    reader = SyntheticCharts
    image_size: int | tuple[int, int] = 336
    charts: Sequence[str] = CHART_KINDS
    questions: Sequence[str] = QUESTION_KINDS
    printed_share: float = 0.5


@dataclass
class ChartFiles(Files):
    """A file or ChartQA folder per split.

    Attributes:
        parts: Which of a folder's parts are read (`human`, `augmented`).
        image_folder: Folder of the pictures, seen from the file. None: `png` where there is one.
        field: Key of a `.json` file's outer object under which the rows are (`qa_pairs` in PlotQA).
        columns: What the columns are called.
        limits: Largest and smallest picture.
    """

    reader = FileCharts
    parts: Sequence[str] = ("human", "augmented")
    image_folder: str | None = None
    field: str | None = None
    columns: ChartColumns | None = None
    limits: ImageLimits | None = None


@dataclass
class ChartHub(Hub):
    """A data set on the Hugging Face hub, by default `HuggingFaceM4/ChartQA`.

    Attributes:
        columns: What the columns are called. None: as in `HuggingFaceM4/ChartQA` and `ahmed-masry/ChartQA`.
        limits: Largest and smallest picture.
    """

    reader = HubCharts
    name: str = "HuggingFaceM4/ChartQA"
    val: str = "val"
    columns: ChartColumns | None = None
    limits: ImageLimits = field(default_factory=ImageLimits)


class ChartDataModule(NumericDataModule):
    """Questions about charts.

    Args:
        processor: Folder or hub name of the model's processor; linked to the backbone's path by the command line.
        charts: Where the charts come from. None: drawn.
        prompts: Wordings around the question, with `{question}` in them; one is chosen a sample. Charts drawn with one
            question that the picture settles may do without, see `SyntheticCharts`. None: a plain one.
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
