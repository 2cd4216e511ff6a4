"""What all metrics over answers share: texts and examples in, a flat dictionary of scalars out.

Shape legend: N answers, C columns of a row.

Unusual: one row of floats an answer is kept until `compute`, because medians need them all; that is some 40 bytes
an answer. Rows and the names of question kinds lie in two flat float32 states that torchmetrics joins over
processes; kinds as UTF-8 bytes, since only tensors can be gathered and processes see different kinds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torchmetrics
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from smmd_lightning.metrics.score import Judgement, Score
from smmd_lightning.types import NumericExample


class AnswerMetrics(torchmetrics.Metric):
    """Base of the metrics over generated answers; a task adds `judge`, `summarise` and `width`.

    Attributes:
        headline: The metric people watch.
        error_unit: Unit of `Score.error`.
        by_kind: Metrics that are also given for each question kind (`meta["kind"]`), where there are several, as
            `by_kind/<kind>/<name>`.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better = True
    headline: ClassVar[str] = "exact_match"
    error_unit: ClassVar[str] = ""
    by_kind: ClassVar[tuple[str, ...]] = ("exact_match",)

    rows: list[Tensor]
    kinds: list[Tensor]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("rows", default=[], dist_reduce_fx="cat")
        self.add_state("kinds", default=[], dist_reduce_fx="cat")

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

    def score(self, prediction: str, example: NumericExample) -> Score:
        """Returns what the prediction file says about one answer; changes nothing."""
        return self.judge(prediction, example).score

    def update(self, predictions: Sequence[str], examples: Sequence[NumericExample]) -> None:
        """Adds answers.

        Args:
            predictions: What the model wrote.
            examples: The examples it answered, in the same order.

        Raises:
            ValueError: Different numbers of both, or an example of another task; nothing is added then.
        """
        if len(predictions) != len(examples):
            raise ValueError(f"Got {len(predictions)} predictions for {len(examples)} examples; they must be as many.")
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

    def compute(self) -> dict[str, Tensor]:
        """Returns all metrics by name, and `samples`, how many answers they are of.

        Of no answer at all shares and errors are NaN.
        """
        table_NC = (
            dim_zero_cat(self.rows).reshape(-1, self.width)
            if len(self.rows)
            else torch.zeros(0, self.width, dtype=torch.float32)
        )
        values = self.summarise(table_NC)
        values["samples"] = torch.tensor(float(len(table_NC)), device=table_NC.device)
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
