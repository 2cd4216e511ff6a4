"""Arithmetic problems drawn on the fly: operations, digits, distribution of operands, chains, and extrapolation.

What is unusual: val and test never ask for a sum that training shows, not even turned round (3 + 5 and 5 + 3 are one
problem, dealt to a split by a hash). As in the number token loss paper (Zausinger et al. 2025), test can ask within the
ranges of training (interpolation), beyond them in digits or terms (extrapolation), or both in turn.

One real example, of `DrawnArithmetic(operations=("addition", "multiplication"), terms=(3, 3)).open("train")`::

    NumericExample(id="train-0-4", prompt="What is (90 + 99) * 79?", answer="14931",
                   meta={"task": "math", "kind": "chain", "regime": "interpolation", "numeric": True})
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from datamodules.sources.origins import Drawn, DrawSample, Fractions, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from datamodules.sources.splits import check_fractions, split_of
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
        steps: One line per step, always with symbols.
        kind: The operation, or `chain` for more than two terms.
        name: Tells problems apart; the same for 3 + 5 and 5 + 3.
    """

    expression: str
    value: Fraction
    steps: tuple[str, ...]
    kind: str
    name: str


@dataclass
class DrawnArithmetic(Drawn):
    """Arithmetic drawn on the fly; no problem of validation or test ever comes up in training.

    Attributes:
        operations: What occurs; divisions always come out even.
        digits: Fewest and most digits of an operand.
        terms: Fewest and most operands.
        distribution: How operands are drawn: `uniform` over all numbers (most are long), `digits` (each length equally
            often), or `log` (uniform in the logarithm).
        decimals: Decimal places of the operands, among their digits.
        negative: Whether results may be negative.
        test: What the test split asks: `interpolation` (the training ranges), `extrapolation`, or `both` in turn.
        test_digits: Fewest and most digits under extrapolation. None: as in training.
        test_terms: Fewest and most operands under extrapolation. None: as in training.
        style: `symbols` ("3 + 5") or `words` ("3 plus 5").
        reasoning: Whether the answer shows each step and ends in `#### result`.
        fractions: Shares of the problems that train, val and test get.

    Raises:
        ValueError: A setting is out of range, or extrapolation is asked for without `test_digits` or `test_terms`.
    """

    operations: Sequence[Operation] = ("addition", "subtraction")
    digits: tuple[int, int] = (1, 2)
    terms: tuple[int, int] = (2, 2)
    distribution: Literal["uniform", "digits", "log"] = "uniform"
    decimals: int = 0
    negative: bool = True
    test: Literal["interpolation", "extrapolation", "both"] = "interpolation"
    test_digits: tuple[int, int] | None = None
    test_terms: tuple[int, int] | None = None
    style: Literal["symbols", "words"] = "symbols"
    reasoning: bool = False
    fractions: Fractions = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = set(self.operations) - set(SYMBOLS)
        if unknown or not self.operations:
            raise ValueError(f"operations must be some of {', '.join(SYMBOLS)}, got {list(self.operations)!r}")
        for name, choice, allowed in (
            ("distribution", self.distribution, ("uniform", "digits", "log")),
            ("test", self.test, ("interpolation", "extrapolation", "both")),
            ("style", self.style, ("symbols", "words")),
        ):
            if choice not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {choice!r}")
        if self.test != "interpolation" and self.test_digits is None and self.test_terms is None:
            raise ValueError(f"test={self.test!r} needs test_digits or test_terms, the ranges beyond training")
        for name, pair, least, most in (
            ("digits", self.digits, 1, MOST_DIGITS),
            ("test_digits", self.test_digits or self.digits, 1, MOST_DIGITS),
            ("terms", self.terms, 2, 100),
            ("test_terms", self.test_terms or self.terms, 2, 100),
        ):
            if len(pair) != 2 or not least <= pair[0] <= pair[1] <= most:
                raise ValueError(f"{name} must be two numbers from {least} to {most} in order, got {pair!r}")
        if not 0 <= self.decimals <= self.digits[0]:
            raise ValueError(f"decimals must be 0 to {self.digits[0]} (the fewest digits), got {self.decimals}")
        check_fractions(self.fractions)

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws a problem."""
        wordings = check_prompts(prompts or ("What is {expression}?",), "expression")
        return partial(self._sample, split=split, seed=seed, prompts=wordings)

    def _sample(
        self, rng: np.random.Generator, key: SampleKey, *, split: Split, seed: int, prompts: Sequence[str]
    ) -> NumericExample:
        regime: Regime = "interpolation"
        if split == "test" and (self.test == "extrapolation" or (self.test == "both" and key.index % 2)):
            regime = "extrapolation"
        problem = self._problem(rng, regime, split, seed)
        value = in_digits(problem.value)
        meta = {
            "task": "math",
            "kind": problem.kind if regime == "interpolation" else f"{problem.kind}, extrapolation",
            "regime": regime,
            "numeric": True,
        }
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng).replace("{expression}", problem.expression),
            answer="\n".join([*problem.steps, f"#### {value}"]) if self.reasoning else value,
            meta=meta,
        )

    def _problem(self, rng: np.random.Generator, regime: Regime, split: Split, seed: int) -> Problem:
        digits, terms = self.digits, self.terms
        if regime == "extrapolation":
            digits, terms = self.test_digits or digits, self.test_terms or terms
        for _ in range(TRIES):
            problem = self._draw(rng, digits, int(rng.integers(terms[0], terms[1] + 1)))
            if problem is None or (problem.value < 0 and not self.negative):
                continue
            if split_of(problem.name, seed, self.fractions) == split:
                return problem
        raise ValueError(
            f"no problem of {terms[0]} to {terms[1]} terms with {digits[0]} to {digits[1]} digits and the operations "
            f"{', '.join(self.operations)} was found for the {split} split in {TRIES} draws; "
            f"widen them, or give it a larger share (fractions={self.fractions})"
        )

    def _draw(self, rng: np.random.Generator, digits: tuple[int, int], terms: int) -> Problem | None:
        value = first = self._operand(rng, digits)
        signs = SYMBOLS if self.style == "symbols" else WORDS
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
                expression = in_digits(first)
            if is_sum and operation in ("multiplication", "division"):
                expression = f"({expression})"
            is_sum = operation in ("addition", "subtraction")
            result = calculate(operation, value, other)
            steps.append(f"{in_digits(value)} {SYMBOLS[operation]} {in_digits(other)} = {in_digits(result)}")
            names.append(f"{SYMBOLS[operation]}{in_digits(other)}")
            expression = f"{expression} {signs[operation]} {in_digits(other)}"
            value = result
        name = in_digits(first) + "".join(names)
        if terms == 2 and names[0][0] in "+*":
            name = names[0][0].join(sorted([in_digits(first), names[0][1:]]))
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


def in_digits(value: Fraction) -> str:
    """Returns a terminating decimal as people write it.

    >>> in_digits(Fraction(-5)), in_digits(Fraction(5, 4))
    ('-5', '1.25')
    """
    if value.denominator == 1:
        return str(value.numerator)
    exact = Context(prec=1000)
    return f"{exact.divide(exact.create_decimal(value.numerator), exact.create_decimal(value.denominator)):f}"
