"""Numerical Token Integrity Loss: each digit by its place, and the whole number it belongs to.

Unusual: a cost that belongs to a whole number is carried by every one of its tokens, so that a mean over
positions is a mean over numbers weighted by their length.

Shape legend: K numeric target positions, N numeric tokens.

One real example, target 305: its tokens have places 2, 1 and 0 and so weigh 1.44, 1.2 and 1; a model whose
best digits read 405 has the number's terms 0.2 (100 / 406) and 0.2 log(406 / 306) added at all three.

Source: Fei et al., "Advancing Sequential Numerical Prediction in Autoregressive Models", ACL 2025,
arXiv 2505.13077. Apart from the authors' code: no Gumbel noise (theirs is 1 % of the logits' unit), the
weight against cross-entropy is constant and not rescaled to its size each step, and tokens of several
digits count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smmd_lightning.losses import kernels
from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.functional import expected_distance
from smmd_lightning.losses.limits import LARGEST, check_number, check_width
from smmd_lightning.losses.positions import NumericPositions, number_tables, numbers_and_places
from smmd_lightning.vocabulary import NumericVocabulary

LARGEST_PLACE = 30
"""Places above count like this one: 10^38 is the end of float32."""


class NTILLoss(NumericLoss):
    """Earth mover's distance by place, plus relative and magnitude deviation of the whole number.

    For token i of a number with n digits, X the number that the model's best tokens spell and Y the true
    one::

        (1 + s)^(digits after i) sum_j p_ij |v_j - y_i|  +  a |X - Y| / (max(X, Y) + 1)
                                                         +  b log((max(X, Y) + 1) / (min(X, Y) + 1))

    X is read off by argmax; its gradient is that of a softmax of low temperature (straight through).
    Numbers are runs of neighbouring numeric tokens; a decimal point ends one.
    """

    distances_NN: Tensor
    values_N: Tensor
    digits_N: Tensor
    begins_N: Tensor

    def __init__(
        self,
        place_growth: float = 0.2,
        relative: float = 0.2,
        magnitude: float = 0.2,
        temperature: float = 0.1,
        hard: bool = True,
    ) -> None:
        """Take the settings; the defaults are those of the authors' code.

        Args:
            place_growth: s, how much more each higher place weighs; 0 weighs all alike.
            relative: a, weight of the relative deviation.
            magnitude: b, weight of the magnitude deviation.
            temperature: Of the softmax that stands in for argmax.
            hard: False reads X off by that softmax itself, which is smooth.

        Raises:
            ValueError: A weight is below 0 or the temperature not above 0.
        """
        super().__init__()
        for name, weight in (
            ("place_growth", place_growth),
            ("relative", relative),
            ("magnitude", magnitude),
        ):
            check_number(name, weight, most=LARGEST)
        check_width("temperature", temperature)
        self.place_growth = place_growth
        self.relative = relative
        self.magnitude = magnitude
        self.temperature = temperature
        self.hard = hard

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Values, their distances, and how tokens make up numbers."""
        return {
            "values_N": vocabulary.values,
            "distances_NN": kernels.pairwise_distances(vocabulary.values),
            **number_tables(vocabulary),
        }

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Cost of each token, its number's share included."""
        number_K, place_K = numbers_and_places(positions, target_K, self.digits_N, self.begins_N)
        values_N = self.values_N.to(logits_KN)
        token_K = expected_distance(logits_KN, target_K, self.distances_NN.to(logits_KN))
        token_K = token_K * torch.pow(1 + self.place_growth, place_K.to(logits_KN))

        worth_K = torch.pow(10.0, place_K.clamp(max=LARGEST_PLACE).to(logits_KN))
        written_K = self._chosen_value(logits_KN, values_N) * worth_K
        true_K = values_N[target_K] * worth_K
        # One slot a token: the slots behind the last number hold 0 for both and are never read.
        x = torch.zeros_like(written_K).index_add(0, number_K, written_K)
        y = torch.zeros_like(true_K).index_add(0, number_K, true_K)
        deviation = (x.log1p() - y.log1p()).abs()
        # The relative deviation follows from it: |X - Y| / (max + 1) = 1 - (min + 1) / (max + 1).
        whole = self.magnitude * deviation - self.relative * deviation.neg().expm1()
        return token_K + whole[number_K]

    def _chosen_value(self, logits_KN: Tensor, values_N: Tensor) -> Tensor:
        """The value of the best token, (K,), with the gradient of the soft choice."""
        soft_K = (logits_KN / self.temperature).softmax(dim=1) @ values_N
        return values_N[logits_KN.argmax(dim=1)] + (soft_K - soft_K.detach()) if self.hard else soft_K
