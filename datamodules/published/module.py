"""Published benchmarks as a data module: every question asked once, with the benchmark's prompt.

One real example, in YAML::

    data:
      class_path: datamodules.PublishedDataModule
      init_args: {benchmark: measurebench, folder: MeasureBench}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from datamodules.base import NumericDataModule
from datamodules.published import prompts
from datamodules.published.layouts import BENCHMARKS, BenchmarkQuestion
from datamodules.sources.images import load_image
from datamodules.sources.origins import Split
from smmd_lightning.types import NumericExample, SampleKey

Benchmark = Literal["measurebench", "chartqapro", "its_about_time", "ticktockvqa", "clockbench", "chartqa"]

MARGIN = 0.2
"""Part of a box's sides that is kept around it, as "It's About Time" does."""


class PublishedQuestions:
    """The questions of a benchmark.

    Args:
        benchmark: Its name.
        folder: Folder, or one file of it.
        split: Split, as the benchmark calls it. None: the one that papers report.

    Raises:
        ValueError: There is no such benchmark, or its files are not as their authors distribute them.
    """

    def __init__(self, benchmark: str, folder: str | Path, split: str | None = None) -> None:
        if benchmark not in BENCHMARKS:
            raise ValueError(f"benchmark must be one of {', '.join(BENCHMARKS)}, got {benchmark!r}.")
        self.folder = Path(folder)
        if not self.folder.exists():
            raise ValueError(f"There is no folder or file {self.folder} (from {Path.cwd()}).")
        reader, usual = BENCHMARKS[benchmark]
        self.questions: list[BenchmarkQuestion] = list(reader(self.folder, split or usual))
        if not self.questions:
            raise ValueError(f"{self.folder}: no question of {benchmark} in the split {split or usual!r}.")

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.questions)

    def example(self, key: SampleKey) -> NumericExample:
        """Reads one question and its picture.

        Raises:
            BadSample: The picture cannot be used.
            ValueError: The picture's path leaves the data folder.
        """
        question = self.questions[key.index]
        root = self.folder if self.folder.is_dir() else self.folder.parent
        picture = load_image(question.image, root=root, name=f"picture of {question.id}")
        if question.box is not None:
            left, top, width, height = question.box
            side = max(width, height) * (1 + 2 * MARGIN) / 2
            x, y = left + width / 2, top + height / 2
            edges = max(0, x - side), max(0, y - side), min(picture.width, x + side), min(picture.height, y + side)
            picture = picture.crop(tuple(round(edge) for edge in edges))  # type: ignore[arg-type]
        return NumericExample(question.id, question.prompt, question.answer, (picture,), dict(question.meta))


class PublishedDataModule(NumericDataModule):
    """A published benchmark, to be tested on; it has no training split.

    Args:
        processor: As in `NumericDataModule`.
        benchmark: Name of the benchmark.
        folder: Its folder, or one file of it.
        part: Split, as the benchmark calls it. None: the one that papers report.
        kwargs: Other settings of `NumericDataModule`. `max_bad_share` is 0 unless it is given: every question counts.
    """

    def __init__(
        self, processor: str, benchmark: Benchmark, folder: str, part: str | None = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("max_bad_share", 0.0)
        if benchmark == "clockbench" and kwargs.get("system_prompt") is None:
            kwargs["system_prompt"] = prompts.CLOCKBENCH_SYSTEM
        super().__init__(processor, **kwargs)
        self.benchmark = benchmark
        self.folder = folder
        self.part = part

    def source(self, split: Split) -> PublishedQuestions:
        """Returns the questions.

        Raises:
            ValueError: Another split than `test` is asked for, or the files are not as they should be.
        """
        if split != "test":
            raise ValueError(f"{self.benchmark} is a benchmark: it has questions to test on, and no {split} split.")
        return PublishedQuestions(self.benchmark, self.folder, self.part)
