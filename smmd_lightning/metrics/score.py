"""What is known about one answer: for people (`Score`), and as one row of numbers for the means (`Judgement`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """One answer beside the truth, as the prediction file shows it.

    Attributes:
        parsed: What was understood of the answer; None if nothing was.
        truth: The right answer, written the same way.
        error: Distance from the truth in the metric's `error_unit`; None where there is none (words, or not parsed).
        correct: Whether the answer is exactly right.
    """

    parsed: str | None
    truth: str
    error: float | None
    correct: bool


@dataclass(frozen=True)
class Judgement:
    """A score and the row of numbers that enters the means.

    Attributes:
        score: For people.
        row: One float a column of the metric; shares are means of columns that hold 0 or 1.
    """

    score: Score
    row: tuple[float, ...]
