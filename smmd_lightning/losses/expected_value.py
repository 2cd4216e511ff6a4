"""Losses on the expected value of whole numbers: RAFT's squared error, and the number-level NTL.

Unusual: with one forward pass the digits' distributions are known along the true answer alone. The expected value of a
number is therefore read off digit by digit, sum_i 10^(place of i) sum_j p_ij v_j, each digit given the true ones
before. For numbers of one token that is the model's own expectation.

Shape legend: K numeric target positions, N numeric tokens.

One real example, "12.5" with a model that wavers between 1 and 2 for the first digit and is sure of the others: the
expected value is 17.5, RAFT costs 25 and the number-level NTL 5 / 30.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.limits import check_choice
from smmd_lightning.losses.positions import (
    NumericPositions,
    decimals_and_places,
    digits_after,
    head_log_normalizer,
    number_tables,
    numbers_and_places,
)
from smmd_lightning.vocabulary import NumericVocabulary

LARGEST_PLACE = 15
"""Places above count like this one: squares of larger values leave float32."""


class RAFTLoss(NumericLoss):
    """RAFT: squared error of the expected value, (sum_y p(y) y - y_true)^2.

    p is taken over the whole head and not normalised over numbers, as published, so a model that says words has an
    expected value near 0. It is least at the true law's mean, wherever the mass is. The cost belongs to a whole number
    and is carried by each of its tokens. A time of day is two numbers here.

    Source: Lukasik et al., "Better autoregressive regression with LLMs via regression-aware fine-tuning", ICLR 2025.
    They sum over a grid of answers; for answers of one token this is the same sum, for longer ones see above.
    """

    values_N: Tensor
    digits_N: Tensor
    begins_N: Tensor
    needs_log_normalizer = True

    def __init__(self, unit: Literal["value", "relative"] = "value") -> None:
        """Take the settings.

        Args:
            unit: What an error is measured in: `value`, as published, or `relative`, shares of the true value (of 1
                where that is smaller).

        Raises:
            ValueError: `unit` is neither.
        """
        super().__init__()
        check_choice("unit", unit, ("value", "relative"))
        self.unit = unit

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Values, and how tokens make up numbers."""
        return {"values_N": vocabulary.values, **number_tables(vocabulary)}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Squared error of the number of each token."""
        number_K, place_K = decimals_and_places(positions, target_K, self.digits_N, self.begins_N)
        values_N = self.values_N.to(logits_KN)
        probability_KN = (logits_KN - head_log_normalizer(positions).to(logits_KN)[:, None]).exp()
        expected, true = _values(probability_KN @ values_N, values_N[target_K], number_K, place_K)
        error = expected - true
        if self.unit == "relative":
            error = error / true.clamp(min=1)
        return error.square()[number_K]


class NTLNumberLoss(NumericLoss):
    """Number-level NTL: |X - Y| / (X + Y), X the expected and Y the true value of a whole number.

    p is the softmax over the numeric tokens. The cost lies between 0 and 1, belongs to a whole number, and is carried
    by each of its tokens. Made for tokens of one digit. A time of day is two numbers here.

    Source: the class `NumberLevelLoss` of the package `ntloss` (Zausinger et al., ICML 2025, arXiv 2411.02083), with
    which it agrees number by number; the package takes a mean over numbers.
    """

    values_N: Tensor
    digits_N: Tensor
    begins_N: Tensor

    def __init__(self, decimals: bool = True) -> None:
        """Take the settings.

        Args:
            decimals: Whether "12.34" is one number, or two as the package has it unless told otherwise.
        """
        super().__init__()
        self.decimals = decimals

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Values, and how tokens make up numbers."""
        return {"values_N": vocabulary.values, **number_tables(vocabulary)}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Symmetric relative error of the number of each token."""
        if self.decimals:  # the cost knows ratios only, so digits behind the point count on
            number_K, _ = decimals_and_places(positions, target_K, self.digits_N, self.begins_N)
            place_K = digits_after(number_K, self.digits_N.to(target_K.device)[target_K])
        else:
            number_K, place_K = numbers_and_places(positions, target_K, self.digits_N, self.begins_N)
        values_N = self.values_N.to(logits_KN)
        expected, true = _values(logits_KN.softmax(dim=1) @ values_N, values_N[target_K], number_K, place_K)
        smallest = torch.finfo(torch.float32).eps
        return ((expected - true).abs() / (expected.abs() + true.abs() + smallest))[number_K]


def _values(expected_K: Tensor, true_K: Tensor, number_K: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
    """Sums the tokens' values by number: (K,) each, one slot a token, those behind the last number 0."""
    worth_K = torch.pow(10.0, place_K.clamp(max=LARGEST_PLACE).to(expected_K))
    expected = torch.zeros_like(expected_K).index_add(0, number_K, expected_K * worth_K)
    return expected, torch.zeros_like(true_K).index_add(0, number_K, true_K * worth_K)
