"""Digit Entropy Loss: binary cross-entropy of each digit, weighted by the digit's own probability and by its place.

Unusual: it knows no distance between digits; what it knows of numbers is the place. The probability that weighs a
digit takes part in the gradient.

Shape legend: K numeric target positions, N numeric tokens.

One real example, "12.5": the weights of the places are 4, 2 and 1.02^-2.

Source: Zheng et al., "DEL: Digit Entropy Loss for Numerical Learning of Large Language Models", arXiv 2605.20369;
formula and weights are those of the authors' code (github.com/PolyU-VCLab/DEL, train-qwen-deepseek.py), which adds it
to cross-entropy with weight 0.01.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.positions import NumericPositions, decimals_and_places, number_tables
from smmd_lightning.vocabulary import NumericVocabulary

PLACE_BASE = 1.02
"""Decimals weigh this to the power of their place less one: 1.02^-2 for tenths."""


class DigitEntropyLoss(NumericLoss):
    """DEL: w mean_j p_j BCE(sigmoid(z_j), [j is the target]).

    With z the logits of the numeric tokens and p their softmax. The place's weight w is 2, 4, 6, ... from the ones
    upwards, and 1.02^-2, 1.02^-3, ... behind a decimal point. Published for tokens of one digit; with longer tokens the
    same formula goes over all of them.

    Example:
        >>> digits = NumericVocabulary(token_ids=range(10), values=range(10))
        >>> sure = 20 * torch.eye(10)[[4, 3]]  # the second is wrong
        >>> positions = NumericPositions(torch.tensor([0, 1]), torch.tensor([0, 0]))
        >>> [round(cost, 2) for cost in DigitEntropyLoss().bind(digits)(sure, torch.tensor([4, 4]), positions).tolist()]
        [0.0, 4.0]
    """

    digits_N: Tensor
    begins_N: Tensor

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """How tokens make up numbers."""
        return number_tables(vocabulary)

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Cost of each token, its place's weight included."""
        _, place_K = decimals_and_places(positions, target_K, self.digits_N, self.begins_N)
        place_K = place_K.to(logits_KN)
        weight_K = torch.where(place_K >= 0, 2 * (place_K + 1), torch.pow(PLACE_BASE, place_K.clamp(max=0) - 1))
        one_hot_KN = F.one_hot(target_K, logits_KN.shape[1]).to(logits_KN)
        binary_KN = F.binary_cross_entropy_with_logits(logits_KN, one_hot_KN, reduction="none")
        return weight_K * (logits_KN.softmax(dim=1) * binary_KN).mean(dim=1)
