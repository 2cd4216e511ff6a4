"""Arithmetic problems made on the fly: operations, digits, operand distribution, chains, and what lies beyond training.

What is unusual: val and test never ask for a sum that training shows, not even turned round (3 + 5 and 5 + 3 are one
problem, dealt to a split by a hash). As in the number token loss paper (Zausinger et al. 2025), test can ask within the
ranges of training (interpolation), beyond them in digits or terms (extrapolation), or both in turn.

One real example, of `SyntheticArithmetic(10, "train", operations=("addition", "multiplication"), terms=(3, 3))`::

    NumericExample(id="train-0-4", prompt="What is (90 + 99) * 79?", answer="14931",
                   meta={"task": "math", "kind": "chain", "regime": "interpolation", "numeric": True})
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from typing import Literal

import numpy as np

from datamodules.sources.splits import check_fractions, check_split, pick_prompt, sample_rng, split_of
from datamodules.text_math.tables import check_prompts
from smmd_lightning.types import NumericExample, SampleKey

Operation = Literal["addition", "subtraction", "multiplication", "division"]
Regime = Literal["interpolation", "extrapolation"]

SYMBOLS = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}
WORDS = {"addition": "plus", "subtraction": "minus", "multiplication": "times", "division": "divided by"}
MOST_DIGITS = 18
TRIES = 2000
"""Draws for one sample; a split that none of them meets is empty for all purposes."""


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        expression: How it is asked.
        value: The exact result.
        steps: One line a step, always with symbols.
        kind: The operation, or `chain` for more than two terms.
        name: Tells problems apart; the same for 3 + 5 and 5 + 3.
    """

    expression: str
    value: Fraction
    steps: tuple[str, ...]
    kind: str
    name: str


class SyntheticArithmetic:
    """Arithmetic drawn from settings; a sample is a function of (seed, split, epoch, index).

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`.
        operations: What occurs; divisions always come out even.
        digits: Fewest and most digits of an operand.
        terms: Fewest and most operands.
        distribution: `uniform` over all numbers of the range (most are long), `digits` (each length equally often), or
            `log` (uniform in the logarithm).
        decimals: Decimal places of the operands, among their digits.
        negative: Whether results may be negative.
        test: What the test split asks: `interpolation`, `extrapolation`, or `both` in turn.
        test_digits: Fewest and most digits under extrapolation. None: as in training.
        test_terms: Fewest and most operands under extrapolation. None: as in training.
        style: `symbols` ("3 + 5") or `words` ("3 plus 5").
        prompts: Wordings with `{expression}` in them; one is chosen a sample.
        reasoning: Whether the answer shows each step and ends in `#### result`.
        fractions: Shares of the problems that train, val and test get.
        seed: Seed of everything.

    Raises:
        ValueError: A setting is out of range, or extrapolation is asked for without `test_digits` or `test_terms`.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        operations: Sequence[Operation] = ("addition", "subtraction"),
        digits: tuple[int, int] = (1, 2),
        terms: tuple[int, int] = (2, 2),
        distribution: Literal["uniform", "digits", "log"] = "uniform",
        decimals: int = 0,
        negative: bool = True,
        test: Literal["interpolation", "extrapolation", "both"] = "interpolation",
        test_digits: tuple[int, int] | None = None,
        test_terms: tuple[int, int] | None = None,
        style: Literal["symbols", "words"] = "symbols",
        prompts: Sequence[str] | None = None,
        reasoning: bool = False,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        seed: int = 0,
    ) -> None:
        unknown = set(operations) - set(SYMBOLS)
        if unknown or not operations:
            raise ValueError(f"operations must be some of {', '.join(SYMBOLS)}, got {list(operations)!r}")
        for name, choice, allowed in (
            ("distribution", distribution, ("uniform", "digits", "log")),
            ("test", test, ("interpolation", "extrapolation", "both")),
            ("style", style, ("symbols", "words")),
        ):
            if choice not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {choice!r}")
        if test != "interpolation" and test_digits is None and test_terms is None:
            raise ValueError(f"test={test!r} needs test_digits or test_terms, the ranges beyond training")
        for name, pair, least, most in (
            ("digits", digits, 1, MOST_DIGITS),
            ("test_digits", test_digits or digits, 1, MOST_DIGITS),
            ("terms", terms, 2, 100),
            ("test_terms", test_terms or terms, 2, 100),
        ):
            if len(pair) != 2 or not least <= pair[0] <= pair[1] <= most:
                raise ValueError(f"{name} must be two numbers from {least} to {most} in order, got {pair!r}")
        if not 0 <= decimals <= digits[0]:
            raise ValueError(f"decimals must be 0 to {digits[0]} (the fewest digits), got {decimals}")
        self.size, self.split, self.seed = size, check_split(split), seed
        self.operations = tuple(operations)
        self.ranges = {"interpolation": (digits, terms), "extrapolation": (test_digits or digits, test_terms or terms)}
        self.distribution, self.decimals, self.negative, self.test = distribution, decimals, negative, test
        self.signs = SYMBOLS if style == "symbols" else WORDS
        self.prompts = check_prompts(prompts or ("What is {expression}?",), "expression")
        self.reasoning, self.fractions = reasoning, check_fractions(fractions)

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws a sample.

        Raises:
            ValueError: The settings leave no problem for this split.
        """
        rng = sample_rng(self.seed, self.split, key)
        regime: Regime = "interpolation"
        if self.split == "test" and (self.test == "extrapolation" or (self.test == "both" and key.index % 2)):
            regime = "extrapolation"
        problem = self._problem(rng, regime)
        value = written(problem.value)
        meta = {
            "task": "math",
            "kind": problem.kind if regime == "interpolation" else f"{problem.kind}, extrapolation",
            "regime": regime,
            "numeric": True,
        }
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if self.split == "train" else f"{self.split}-{key.index}",
            prompt=pick_prompt(self.prompts, rng).replace("{expression}", problem.expression),
            answer="\n".join([*problem.steps, f"#### {value}"]) if self.reasoning else value,
            meta=meta,
        )

    def _problem(self, rng: np.random.Generator, regime: Regime) -> Problem:
        digits, terms = self.ranges[regime]
        for _ in range(TRIES):
            problem = self._draw(rng, digits, int(rng.integers(terms[0], terms[1] + 1)))
            if problem is None or (problem.value < 0 and not self.negative):
                continue
            if split_of(problem.name, self.seed, self.fractions) == self.split:
                return problem
        raise ValueError(
            f"no problem of {terms[0]} to {terms[1]} terms with {digits[0]} to {digits[1]} digits and the operations "
            f"{', '.join(self.operations)} was found for the {self.split} split in {TRIES} draws; "
            f"widen them, or give it a larger share (fractions={self.fractions})"
        )

    def _draw(self, rng: np.random.Generator, digits: tuple[int, int], terms: int) -> Problem | None:
        value = first = self._operand(rng, digits)
        expression, steps, names, is_sum = "", [], [], False
        for place in range(1, terms):
            operation = self.operations[int(rng.integers(len(self.operations)))]
            other = self._operand(rng, digits)
            if operation == "division":
                if not other:
                    return None
                if place == 1:  # an even division: the quotient is drawn, the dividend follows
                    value = first = value * other
                elif (value / other).denominator != 1:
                    return None
            if place == 1:
                expression = written(first)
            if is_sum and operation in ("multiplication", "division"):
                expression = f"({expression})"
            is_sum = operation in ("addition", "subtraction")
            result = calculate(operation, value, other)
            steps.append(f"{written(value)} {SYMBOLS[operation]} {written(other)} = {written(result)}")
            names.append(f"{SYMBOLS[operation]}{written(other)}")
            expression = f"{expression} {self.signs[operation]} {written(other)}"
            value = result
        name = written(first) + "".join(names)
        if terms == 2 and names[0][0] in "+*":
            name = names[0][0].join(sorted([written(first), names[0][1:]]))
        return Problem(expression, value, tuple(steps), operation if terms == 2 else "chain", name)

    def _operand(self, rng: np.random.Generator, digits: tuple[int, int]) -> Fraction:
        fewest, most = digits
        if self.distribution == "digits":
            fewest = most = int(rng.integers(fewest, most + 1))
        low, high = (10 ** (fewest - 1) if fewest > 1 else 0), 10**most - 1
        if self.distribution == "log":
            low = max(low, 1)
            number = min(int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))), high)
        else:
            number = int(rng.integers(low, high + 1))
        return Fraction(number, 10**self.decimals)


def calculate(operation: str, left: Fraction, right: Fraction) -> Fraction:
    """Returns the exact result of one operation.

    Raises:
        ValueError: There is no such operation.
    """
    if operation == "addition":
        return left + right
    if operation == "subtraction":
        return left - right
    if operation == "multiplication":
        return left * right
    if operation == "division":
        return left / right
    raise ValueError(f"operation must be one of {', '.join(SYMBOLS)}, got {operation!r}")


def written(value: Fraction) -> str:
    """Returns a terminating decimal as people write it.

    >>> written(Fraction(-5)), written(Fraction(5, 4))
    ('-5', '1.25')
    """
    if value.denominator == 1:
        return str(value.numerator)
    exact = Context(prec=1000)
    return f"{exact.divide(exact.create_decimal(value.numerator), exact.create_decimal(value.denominator)):f}"
