"""Place-value weights around any numeric loss: an error in the tens costs more than one in the ones.

Unusual: it wraps another loss. The weights of a number's tokens have mean 1, so the weight against
cross-entropy keeps its meaning, and numbers of one token are left as they are.

Shape legend: K numeric target positions, N numeric tokens.

One real example, SMMD on digits with an answer of "305": its tokens weigh 12/7, 6/7 and 3/7::

    numeric_loss:
      class_path: smmd_lightning.losses.PlaceWeightedLoss
      init_args: {loss: {class_path: smmd_lightning.losses.SMMDLoss}, base: 2.0}

Source: our own. Related weights are in NTIL (arXiv 2505.13077) and in the appendix of DIST2Loss (arXiv
2503.02379).
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.limits import check_width
from smmd_lightning.losses.positions import NumericPositions, number_tables, numbers_and_places
from smmd_lightning.vocabulary import NumericVocabulary


class PlaceWeightedLoss(NumericLoss):
    """base^(digits after the token), scaled to mean 1 within each number, times another loss.

    A decimal point ends a number, so in "3.75" the 3 stands alone and 75 is weighed like seventy-five.
    """

    digits_N: Tensor
    begins_N: Tensor

    def __init__(self, loss: NumericLoss, base: float = 2.0) -> None:
        """Take the loss to weigh.

        Args:
            loss: Any numeric loss, not bound yet.
            base: How many times more a token weighs for each digit after it; 1 changes nothing, 10 follows
                the value.

        Raises:
            ValueError: `base` is outside its range, or the loss looks at whole answers or at the head.
        """
        super().__init__()
        check_width("base", base)
        if loss.whole_answers:
            raise ValueError(f"loss: {type(loss).__name__} sees whole answers, places among them; use it by itself.")
        if loss.reads_head:
            raise ValueError(f"loss: {type(loss).__name__} costs tokens over the whole head; use it by itself.")
        self.loss = loss
        self.base = base
        self.needs_log_normalizer = loss.needs_log_normalizer

    def bind(self, vocabulary: NumericVocabulary) -> Self:
        """Bind the loss inside as well."""
        self.loss.bind(vocabulary)
        return super().bind(vocabulary)

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """How tokens make up numbers."""
        return number_tables(vocabulary)

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Weighted cost of each position."""
        number_K, place_K = numbers_and_places(positions, target_K, self.digits_N, self.begins_N)
        # Relative to the number's first token, so that a run of a hundred digits does not overflow.
        highest_K = torch.zeros_like(place_K).scatter_reduce(0, number_K, place_K, "amax")[number_K]
        weight_K = torch.pow(self.base, (place_K - highest_K).to(logits_KN))
        total_K = torch.zeros_like(weight_K).index_add(0, number_K, weight_K)[number_K]
        tokens_K = torch.zeros_like(weight_K).index_add(0, number_K, torch.ones_like(weight_K))[number_K]
        return self.loss.per_position(logits_KN, target_K, positions) * weight_K * tokens_K / total_K
