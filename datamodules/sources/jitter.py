"""Label jitter: training answers drawn from a law around the true one.

Unusual: nothing is stored. A draw is a function of (seed, epoch, index), as samples are, so a resumed run and another
number of workers or processes see the same labels, and each epoch draws new ones.

One real example: with a width of one minute the answer "03:59" becomes "04:00" in about a quarter of the epochs.
"""

from __future__ import annotations

import random
from dataclasses import replace

from smmd_lightning.answers.nearby import AnswerLaw
from smmd_lightning.types import NumericExample, SampleKey, Source


class JitteredSource:
    """A source whose answers are drawn from a law around its own.

    Args:
        source: The samples with their true answers.
        law: Replaces the last number or time of day of each answer; answers without any stay as they are.
        seed: The data module's seed.
    """

    def __init__(self, source: Source, law: AnswerLaw, seed: int) -> None:
        self.source, self.law, self.seed = source, law, seed

    def __len__(self) -> int:
        """Number of samples of one pass."""
        return len(self.source)

    def example(self, key: SampleKey) -> NumericExample:
        """Returns the sample with a drawn answer; `meta` keeps the facts of the true one."""
        example = self.source.example(key)
        # Python hashes a text seed by SHA-512, the same on every machine.
        random_ = random.Random(f"answer_jitter {self.seed} {key.epoch} {key.index}")
        return replace(example, answer=self.law.draw_last(example.answer, random_))
