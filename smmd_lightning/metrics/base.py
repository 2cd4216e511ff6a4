"""What all metrics over answers share: texts and examples in, a flat dictionary of scalars out.

Shape legend: N answers, C columns of a row.

Unusual: one row of floats per answer is kept until `compute`, because medians need them all; that is some 40 bytes
per answer. Rows and the names of question kinds lie in two flat float32 states that torchmetrics joins over
processes; kinds as UTF-8 bytes, since only tensors can be gathered and processes see different kinds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from smmd_lightning.answers import parse_quantity
from smmd_lightning.metrics.facts import MetricFacts, ToleranceCurve, declared_facts
from smmd_lightning.metrics.score import Judgement, Score
from smmd_lightning.types import NumericExample

TASKS: dict[str, type[AnswerMetrics]] = {}
"""The metrics class of each task. A class that says `task = ...` enters itself."""

NUMBER_PLACES = ("ones", "tens", "hundreds", "thousands", "ten thousands", "hundred thousands")


class AnswerMetrics(torchmetrics.Metric):
    """Base of the metrics over generated answers, and the one place where a task is declared.

    A task adds `judge`, `summarise` and `width`, and says what these attributes of the class mean for it. A class with
    a `task` of its own is found by that name everywhere: in the module, the report, the gallery, the comparison.

    Attributes:
        task: Name of the task, as examples carry it in `meta["task"]`.
        title: Name for people ("Clocks").
        headline: The metric people watch.
        tiles: Metrics that a page shows first, after the headline.
        unit: Unit of `Score.error`: "minutes", "relative" for a part of the truth, "absolute" for none.
        facts: What is known about each metric; `*` in a name stands for a number.
        by_kind: Metrics that are also given for each question kind (`meta["kind"]`), where there are several, as
            `by_kind/<kind>/<name>`.
        tolerant_rule: What `close_enough` asks, in words ("within 5 minutes").
        curve: Axis of the plot of accuracy by tolerance; None for none.
        places: Names of the digits' places in `digits`, from the ones on.
        reads: What an answer is, a number or a time of day.
        plots: "package.module:function" of a function that takes a judged part of a report and returns SVG figures to
            be shown instead of the plots about numbers; empty for none.
        overlay: "package.module:function" of a function (row, picture or None, size in pixels) -> picture or None that
            draws the answer over a sample's picture; empty for none.
        overlay_svg: The same for pages: a function (row, address of the picture or "") -> HTML of the picture with the
            answer over it, or "" to show the picture alone.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better = True
    task: ClassVar[str] = ""
    title: ClassVar[str] = ""
    headline: ClassVar[str] = "exact_match"
    tiles: ClassVar[tuple[str, ...]] = ("parse_failures",)
    unit: ClassVar[str] = ""
    facts: ClassVar[Mapping[str, MetricFacts]] = {
        "exact_match": MetricFacts(),
        "parse_failures": MetricFacts("min"),
        "samples": MetricFacts("max", ""),
        "cut_off": MetricFacts("min", "share", "Cut off by max_new_tokens"),
    }
    tolerant_rule: ClassVar[str] = "exactly right"
    curve: ClassVar[ToleranceCurve | None] = None
    places: ClassVar[tuple[str, ...]] = NUMBER_PLACES
    reads: ClassVar[Literal["number", "time"]] = "number"
    plots: ClassVar[str] = ""
    overlay: ClassVar[str] = ""
    overlay_svg: ClassVar[str] = ""
    by_kind: ClassVar[tuple[str, ...]] = ("exact_match",)

    rows: list[Tensor]
    kinds: list[Tensor]
    cuts: list[Tensor]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enters a class that names a task of its own into `TASKS`.

        Raises:
            ValueError: Another class has that task.
        """
        super().__init_subclass__(**kwargs)
        task = cls.__dict__.get("task")
        if not task:
            return
        other = TASKS.get(task, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):  # the same: run again
            raise ValueError(f"{cls.__qualname__} and {other.__qualname__} both say task = {task!r}; rename one.")
        TASKS[task] = cls

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("rows", default=[], dist_reduce_fx="cat")
        self.add_state("kinds", default=[], dist_reduce_fx="cat")
        self.add_state("cuts", default=[], dist_reduce_fx="cat")

    @property
    @abstractmethod
    def width(self) -> int:
        """C, the number of columns of a row."""

    @abstractmethod
    def judge(self, prediction: str, example: NumericExample) -> Judgement:
        """Judges one answer.

        Raises:
            ValueError: The example's right answer is none of this task.
        """

    @abstractmethod
    def summarise(self, table_NC: Tensor) -> dict[str, Tensor]:
        """Returns the metrics of judged answers, (N, C) float32."""

    @classmethod
    def facts_of(cls, name: str) -> MetricFacts | None:
        """Returns what is known about a metric of this class; None where it declares no such metric.

        Args:
            name: The metric's own name, without stage, task and kind.
        """
        for parent in cls.__mro__:
            if (found := declared_facts(parent.__dict__.get("facts", {}), name)) is not None:
                return found
        return None

    def close_enough(self, table_NC: Tensor) -> Tensor:
        """Returns which answers pass the task's tolerant rule, (N,) bool."""
        return table_NC[:, 0] > 0

    def distances(self, table_NC: Tensor) -> Tensor | None:
        """Returns how far off each answer is, (N,), for the plot of accuracy by tolerance.

        NaN where the truth has no distance (words), infinite where nothing was read. None: the task has no distances.
        """
        return None

    def counted(self, name: str, table_NC: Tensor) -> int:
        """Returns how many answers a share is the mean of; its interval needs that."""
        return len(table_NC)

    def digits(self, text: str) -> str | None:
        """Returns the digits of a truth or a parsed answer, compared place by place from the point; None for none."""
        found = parse_quantity(text)
        return None if found is None else f"{abs(found.value):f}"

    def period_of(self, example: NumericExample) -> float | None:
        """Returns the length of a scale that closes on itself, in the unit of `value_of`; None for others."""
        return None

    def value_of(self, text: str) -> float | None:
        """Returns the value of a truth or a parsed answer (`Score.truth`, `Score.parsed`); None where it has none."""
        found = parse_quantity(text)
        return None if found is None else float(found.value)

    def text_of(self, value: float, like: str) -> str:
        """Writes a value as another answer is written: "4.30 bar" for 4.3 beside "4.25 bar".

        Args:
            value: The value, as `value_of` gives it.
            like: `Score.parsed` of another answer.
        """
        other = parse_quantity(like)
        if other is None:
            return f"{value:g}"
        sign = "%" if other.percent and "%" in like[other.start : other.end] else ""
        return f"{like[: other.start]}{value:.{len(other.written.partition('.')[2])}f}{sign}{like[other.end :]}"

    def per_unit(self, example: NumericExample) -> float:
        """Returns how much of the unit of errors one unit of value is: 1, or 100 / span of an instrument's scale."""
        return 1.0

    def limits_of(self, example: NumericExample) -> tuple[float, float] | None:
        """Returns the least and greatest value that the question allows (`meta["limits"]`); None where none is known.

        Values of a law beyond them count as the limit, so that a stray "742 million" of little mass does not outweigh
        all else.

        Raises:
            ValueError: The limits are not two numbers in order.
        """
        limits = example.meta.get("limits")
        if limits is None:
            return None
        if not isinstance(limits, list | tuple) or len(limits) != 2 or not limits[0] < limits[1]:
            raise ValueError(f"{example.id}: meta['limits'] must be two numbers in order, got {limits!r}.")
        return float(limits[0]), float(limits[1])

    def largest_error(self, example: NumericExample) -> float:
        """Returns what an answer without a value costs, in the unit of errors; as far off as the answer 0 would be."""
        truth = self.value_of(self.score("", example).truth) or 0.0
        return abs(truth) * self.per_unit(example) or 1.0

    def score(self, prediction: str, example: NumericExample) -> Score:
        """Returns what the prediction file says about one answer; changes nothing."""
        return self.judge(prediction, example).score

    def update(
        self,
        predictions: Sequence[str],
        examples: Sequence[NumericExample],
        cut_off: Sequence[bool] | None = None,
    ) -> None:
        """Adds answers.

        Args:
            predictions: What the model wrote.
            examples: The examples it answered, in the same order.
            cut_off: Whether each answer was ended by the limit of tokens instead of by the model. None: not known.

        Raises:
            ValueError: Different numbers of both, or an example of another task; nothing is added then.
        """
        if len(predictions) != len(examples):
            raise ValueError(f"Got {len(predictions)} predictions for {len(examples)} examples; they must be as many.")
        if cut_off is not None and len(cut_off) != len(examples):
            raise ValueError(
                f"Got {len(cut_off)} values of cut_off for {len(examples)} examples; they must be as many."
            )
        rows: list[float] = []
        for prediction, example in zip(predictions, examples, strict=True):
            try:
                rows += self.judge(prediction, example).row
            except ValueError as error:
                raise ValueError(f"Example {example.id!r}: {error}") from error
        names = "".join(f"{example.meta.get('kind') or ''}".replace("\n", " ") + "\n" for example in examples)
        self.rows.append(torch.tensor(rows, dtype=torch.float32, device=self.device))
        encoded = list(names.encode("utf-8", errors="replace"))
        self.kinds.append(torch.tensor(encoded, dtype=torch.float32, device=self.device))
        cuts = [float("nan")] * len(examples) if cut_off is None else [float(cut) for cut in cut_off]
        self.cuts.append(torch.tensor(cuts, dtype=torch.float32, device=self.device))

    def compute(self) -> dict[str, Tensor]:
        """Returns all metrics by name, and `samples`, how many answers they are of.

        `cut_off` is the share of answers ended by the limit of tokens, where that is known. Of no answer at all shares
        and errors are NaN.
        """
        table_NC = (
            dim_zero_cat(self.rows).reshape(-1, self.width)
            if len(self.rows)
            else torch.zeros(0, self.width, dtype=torch.float32)
        )
        values = self.summarise(table_NC)
        values["samples"] = torch.tensor(float(len(table_NC)), device=table_NC.device)
        cuts_N = dim_zero_cat(self.cuts) if len(self.cuts) else torch.zeros(0)
        if len(known_N := cuts_N[~cuts_N.isnan()]):
            values["cut_off"] = known_N.mean()
        kinds = self._kind_names()
        for kind in sorted(set(kinds) - {""}) if len(set(kinds)) > 1 else []:
            chosen = torch.tensor([name == kind for name in kinds], device=table_NC.device)
            part = self.summarise(table_NC[chosen])
            values |= {f"by_kind/{kind}/{name}": part[name] for name in self.by_kind if name in part}
        return values

    def _kind_names(self) -> list[str]:
        if not len(self.kinds):
            return []
        encoded = dim_zero_cat(self.kinds).to("cpu", torch.uint8)
        return bytes(encoded.tolist()).decode("utf-8").split("\n")[:-1]
