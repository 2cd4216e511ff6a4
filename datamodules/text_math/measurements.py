"""Noisy measurements: the answer is drawn from a known law around a value, so that a near miss is natural.

Unusual: the best possible score is known. Whoever knows the value and the law has the CRPS in `meta["oracle_crps"]` on
average; a model that does better on a test set was lucky, one that does worse has something left to learn.

One real example, of `DrawnMeasurements(noise=8.0).open("train")`::

    NumericExample(id="train-0-0", prompt="Readings: 742. Measured?", answer="735",
                   meta={"task": "math", "kind": "1 readings", "numeric": True, "value": "742", "limits": [132, 967],
                         "oracle_crps": 4.5106})
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from datamodules.sources.origins import Drawn, DrawSample, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from smmd_lightning.answers.nearby import AnswerLaw, Shape
from smmd_lightning.types import NumericExample, SampleKey


@dataclass
class DrawnMeasurements(Drawn):
    """Questions that state readings of a value; the answer is one more measurement of it, in whole numbers.

    With one reading and no offset the question states the value itself. With several the value is their rounded mean,
    and with an offset it lies beside them by an amount that only training shows: both hide it.

    Attributes:
        readings: Fewest and most readings that a question states.
        value_range: Least and greatest value, before the offset.
        noise: Width of the law of the answer around the value: of a Gaussian its standard deviation.
        shape: `gaussian` or `laplace`.
        spread: Readings lie within so much of the value on either side, evenly.
        offset: What the answers' instrument adds to the value.

    Raises:
        ValueError: A setting is out of range, or an answer could fall below zero.
    """

    readings: tuple[int, int] = (1, 1)
    value_range: tuple[int, int] = (200, 899)
    noise: float = 8.0
    shape: Shape = "gaussian"
    spread: int = 20
    offset: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = self.readings
        if not 1 <= least <= most <= 9:
            raise ValueError(f"readings must be two numbers from 1 to 9 in order, got {self.readings}")
        low, high = self.value_range
        if not 0 <= low < high <= 999_999:
            raise ValueError(f"value_range must be two numbers from 0 to 999999 in order, got {self.value_range}")
        if self.spread < 0:
            raise ValueError(f"spread must not be negative, got {self.spread}")
        if not 0 < self.noise <= 100:
            raise ValueError(f"noise must be above 0 and at most 100, got {self.noise}")
        self.law = AnswerLaw(shape=self.shape, widths=(self.noise,), unit="value")
        needed = self.spread + max(0, -self.offset) + math.ceil(6 * self.noise)
        if low < needed:
            raise ValueError(
                f"value_range begins at {low}; with spread {self.spread}, offset {self.offset} and noise {self.noise} "
                f"it must begin at {needed} or above, so that no answer falls below zero"
            )

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws a question with its measurement."""
        wordings = check_prompts(prompts or ("Readings: {question}. Measured?",), "question")
        return partial(self._sample, prompts=wordings)

    def _sample(self, rng: np.random.Generator, key: SampleKey, *, prompts: Sequence[str]) -> NumericExample:
        count = int(rng.integers(self.readings[0], self.readings[1] + 1))
        around = int(rng.integers(self.value_range[0], self.value_range[1] + 1))
        spread = self.spread if count > 1 else 0
        stated = [around + int(rng.integers(-spread, spread + 1)) for _ in range(count)]
        value = round(sum(stated) / count) + self.offset
        beyond = self.spread + math.ceil(6 * self.noise)
        answer = self.law.draw(str(value), random.Random(int(rng.integers(2**63))))
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng).replace("{question}", " ".join(map(str, stated))),
            answer=answer,
            meta={
                "task": "math",
                "kind": f"{count} readings",
                "numeric": True,
                "value": str(value),
                "limits": [self.value_range[0] + self.offset - beyond, self.value_range[1] + self.offset + beyond],
                "oracle_crps": round(oracle_crps(self.shape, self.noise), 4),
            },
        )


@cache
def oracle_crps(shape: Shape, noise: float) -> float:
    """Returns the mean CRPS of the true law of whole-number measurements, in their unit.

    It is half the mean distance of two draws (Gneiting and Raftery 2007, equation 21, where forecast and truth have
    one law), here by enumeration: the law lives on whole numbers.

    Args:
        shape: `gaussian` or `laplace`.
        noise: Width of the law.

    Example:
        >>> round(oracle_crps("gaussian", 8.0), 2), round(8.0 / math.pi**0.5, 2)  # the second: without rounding
        (4.51, 4.51)
    """
    law = AnswerLaw(shape=shape, widths=(noise,), unit="value")
    pairs = law.near("1000000")
    values = np.array([float(text) for text, _ in pairs])
    masses = np.array([mass for _, mass in pairs])
    return float(masses @ np.abs(values[:, None] - values[None]) @ masses / 2)
