"""MixCE on numeric tokens: cross-entropy, weighted by the model's own probability of the truth.

Unusual: it knows neither values nor places. It is here because number losses are compared with it.

Shape legend: K numeric target positions, N numeric tokens.

One real example: a target of probability 1/2 costs log(2) / 2, and its gradient is half that of cross-entropy.

Source: Zhang et al., "MixCE: Training Autoregressive Language Models by Mixing Forward and Reverse Cross-Entropies",
ACL 2023, arXiv 2305.16958: -(eta + (1 - eta) p) log p of the true token, the factor p without a gradient. Published
for all tokens; here the second term is taken for numeric ones, so `loss_weight` is (1 - eta) / eta.
"""

from __future__ import annotations

from torch import Tensor

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.positions import NumericPositions, head_log_normalizer
from smmd_lightning.vocabulary import NumericVocabulary


class MixCELoss(NumericLoss):
    """The term of MixCE that stands for the reverse cross-entropy: -p log p of the target over the whole head.

    The factor p carries no gradient, so the loss falls with p everywhere although its value does not.
    """

    needs_log_normalizer = True

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Nothing beside the vocabulary itself."""
        return {}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Weighted cross-entropy of each position."""
        target_logit_K = logits_KN.gather(1, target_K[:, None]).squeeze(1)
        log_probability_K = target_logit_K - head_log_normalizer(positions).to(logits_KN)
        return -log_probability_K.detach().exp() * log_probability_K
