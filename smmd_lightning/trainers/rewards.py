"""Rewards for reinforcement learning from the metrics of answers, as TRL's trainers call them.

Unusual: `CRPSReward` looks at all samples of one prompt. With X, X' drawn from the model and y the truth,

    CRPS = E|X - y| - 1/2 E|X - X'|          (Gneiting and Raftery 2007, eq. 20)

Both X and X' depend on the model, so the gradient of -CRPS is that of the reward  -|x - y| + E|x - X'|  with the
factor 1, not 1/2. E|x - X'| is estimated by the other samples of the group. A policy that maximises it learns the law
of y, not a point between its values.

One real example::

    trainer = GRPOTrainer(model, reward_funcs=[AnswerReward("clock", scale=30), FormatReward("clock")], ...)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from smmd_lightning.answers import parse_number, parse_time
from smmd_lightning.metrics import metrics_for
from smmd_lightning.types import NumericExample

Shape = Literal["exact", "linear", "exponential"]


def text_of(completion: Any) -> str:
    """Returns the text of a completion: a string, or the last message of a conversation.

    >>> text_of("12"), text_of([{"role": "assistant", "content": "12"}])
    ('12', '12')
    >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]}])
    '12'
    """
    if isinstance(completion, str):
        return completion
    content = completion[-1]["content"] if completion else ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, dict))


class AnswerReward:
    """Between 0 (no answer, or as far off as `scale`) and 1 (right), by the metrics of a task.

    Args:
        task: Whose metrics judge: "clock" (error in minutes, the shorter way round the dial), "chart" and "math" (error
            as `Score.error` of these tasks), "instrument" (percent of the scale), or a task of your own.
        shape: `exact`: 1 or 0. `linear`: 1 - error / scale, at least 0. `exponential`: exp(-error / scale).
        scale: Error, in the task's own unit, at which the linear reward is 0 and the exponential one 1 / e.
        relative: Divide the error by the truth's absolute value (by 1 where that is 0).

    Raises:
        ValueError: The scale is not above 0, or the shape is unknown.

    Examples:
        >>> reward = AnswerReward("clock", scale=30)
        >>> reward(["12:59", "no idea", "1:15"], answer=["1:00", "1:00", "1:00"])
        [0.9666666666666667, 0.0, 0.5]
    """

    def __init__(self, task: str, shape: Shape = "linear", scale: float = 1.0, relative: bool = False) -> None:
        if not (scale > 0 and math.isfinite(scale)):
            raise ValueError(f"scale must be above 0 and finite, got {scale}.")
        if shape not in ("exact", "linear", "exponential"):
            raise ValueError(f"shape must be exact, linear or exponential, got {shape!r}.")
        self.metrics = metrics_for(task)
        self.task, self.shape, self.scale, self.relative = task, shape, scale, relative
        self.__name__ = f"{task}_{shape}_reward"

    def __call__(self, completions: Sequence[Any], answer: Sequence[str], **columns: Any) -> list[float]:
        """Returns one reward per completion.

        Args:
            completions: What the model wrote, as strings or conversations.
            answer: The right answers.
            **columns: Further columns of the data set, one value per completion; facts for the task's metrics, such as
                `value`, `tick`, `scale` and `unit` of instruments.
        """
        facts = {name: values for name, values in columns.items() if _is_column(values, len(completions))}
        return [
            self._reward(text_of(completion), truth, {name: values[place] for name, values in facts.items()})
            for place, (completion, truth) in enumerate(zip(completions, answer, strict=True))
        ]

    def _reward(self, text: str, truth: str, facts: dict[str, Any]) -> float:
        score = self.metrics.score(text, NumericExample("reward", "", truth, meta={**facts, "task": self.task}))
        if score.correct:
            return 1.0
        if self.shape == "exact" or score.error is None:
            return 0.0
        error = float(score.error)
        if self.relative:
            error /= abs(float(parse_number(truth) or 1)) or 1.0
        return math.exp(-error / self.scale) if self.shape == "exponential" else max(0.0, 1 - error / self.scale)


class FormatReward:
    """1 where a completion is nothing but a number or a time of day, 0 elsewhere.

    Args:
        task: "clock" for times of day; numbers for every other task.
        longest: Most characters of such a completion.

    Examples:
        >>> FormatReward("clock")(["03:05", "It is 03:05.", "3"])
        [1.0, 0.0, 0.0]
    """

    def __init__(self, task: str, longest: int = 16) -> None:
        self.task, self.longest = task, longest
        self.__name__ = f"{task}_format_reward"

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """Returns one reward per completion."""
        return [float(self._plain(text_of(completion).strip())) for completion in completions]

    def _plain(self, text: str) -> bool:
        if not text or len(text) > self.longest or set(text) - set("0123456789.,:-+/ "):
            return False
        return (parse_time(text) if self.task == "clock" else parse_number(text)) is not None


class CRPSReward:
    """-|x - y| + mean distance to the other samples of the prompt, so that the model learns a law and not a point.

    Args:
        scale: What distances are divided by.
        missing: Distance to the truth of a completion without a number, in units of `scale`.
        period: Length of a scale that closes on itself, 360 for directions; None for plain numbers.

    Raises:
        ValueError: A setting is not above 0.

    Examples:
        >>> CRPSReward()(["a"] * 2, ["3", "7"], answer=["5", "5"])
        [2.0, 2.0]
    """

    def __init__(self, scale: float = 1.0, missing: float = 10.0, period: float | None = None) -> None:
        for name, value in (("scale", scale), ("missing", missing), ("period", period)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be above 0 and finite, got {value}.")
        self.scale, self.missing, self.period = scale, missing, period
        self.__name__ = "crps_reward"

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], answer: Sequence[str], **columns: Any
    ) -> list[float]:
        """Returns one reward per completion.

        Args:
            prompts: The prompts; equal ones with equal answers that stand side by side are one group.
            completions: What the model wrote.
            answer: The right answers; each must be a number.
            **columns: Not used.

        Raises:
            ValueError: A right answer is not a number.
        """
        rewards: list[float] = []
        for first, last in _groups(list(zip(prompts, answer, strict=True))):
            truth = parse_number(answer[first])
            if truth is None:
                raise ValueError(f"the right answer must be a number, got {answer[first]!r}.")
            said = [parse_number(text_of(completion)) for completion in completions[first:last]]
            values = [None if number is None else float(number) for number in said]
            known = [value for value in values if value is not None]
            for value in values:
                if value is None:
                    rewards.append(-self.missing)
                    continue
                others = sum(self._apart(value, other) for other in known) / max(len(known) - 1, 1)
                rewards.append(others - min(self._apart(value, float(truth)), self.missing))
        return rewards

    def _apart(self, first: float, second: float) -> float:
        apart = abs(first - second)
        if self.period is not None:
            apart = min(apart % self.period, -apart % self.period)
        return min(apart / self.scale, self.missing)


def _groups(keys: Sequence[Any]) -> list[tuple[int, int]]:
    """Runs of equal neighbours, as pairs of first place and the place behind the last."""
    starts = [place for place in range(len(keys)) if place == 0 or keys[place] != keys[place - 1]]
    return list(zip(starts, [*starts[1:], len(keys)], strict=True))


def _is_column(values: Any, rows: int) -> bool:
    return isinstance(values, (list, tuple)) and len(values) == rows
