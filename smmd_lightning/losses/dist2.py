"""DIST2Loss: a soft target that falls off with distance.

Unusual: it is not zero at certainty; the best prediction is the soft target itself.

Shape legend: K numeric target positions, N numeric tokens.

One real example, target 4 among the digits at temperature 1: the soft target is 0.56 on 4, 0.21 on 3 and on
5, 0.01 on 2 and on 6.

Source: Chung et al., "Teaching Metric Distance to Discrete Autoregressive Language Models", ICLR 2026,
arXiv 2503.02379.
"""

from __future__ import annotations

from torch import Tensor

from smmd_lightning.losses import kernels
from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.functional import negentropy, soft_target_divergence
from smmd_lightning.losses.limits import check_width
from smmd_lightning.losses.positions import NumericPositions, head_log_normalizer
from smmd_lightning.vocabulary import NumericVocabulary


class Dist2Loss(NumericLoss):
    """KL(t || p) to the soft target t_j = exp(-(v_j - v_target)^2 / temperature), normalised.

    p is the softmax over the whole head, as published, or over the numeric tokens alone. The difference
    between the two, the log of the probability of all numeric tokens, is what cross-entropy pushes up too.

    Example:
        >>> loss = Dist2Loss().bind(NumericVocabulary(token_ids=range(10), values=range(10)))
        >>> [round(share, 2) for share in loss.soft_target_NN[4, 2:7].tolist()]
        [0.01, 0.21, 0.56, 0.21, 0.01]
    """

    soft_target_NN: Tensor
    negentropy_N: Tensor

    def __init__(self, temperature: float = 1.0, squash: float | None = None, whole_head: bool = True) -> None:
        """Take the settings.

        Args:
            temperature: Of the soft target, in squared units of the distance; small is near one-hot.
            squash: Rescale distances so that the smallest is 1 and the largest this; None or 0 for off.
            whole_head: Whether p is taken over the whole head (published) or over the numeric tokens alone.

        Raises:
            ValueError: A setting is outside its range.
        """
        super().__init__()
        check_width("temperature", temperature)
        self.temperature = temperature
        self.squash = kernels.checked_squash(squash)
        self.whole_head = whole_head
        self.needs_log_normalizer = whole_head

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Soft target of each possible target, one per row, and their negative entropies."""
        distances_NN = kernels.squash(kernels.pairwise_distances(vocabulary.values), self.squash)
        soft_target_NN = (-distances_NN.square() / self.temperature).softmax(dim=1)
        return {"soft_target_NN": soft_target_NN, "negentropy_N": negentropy(soft_target_NN)}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Divergence from the soft target of each position."""
        if self.whole_head:
            log_probability_KN = logits_KN - head_log_normalizer(positions).to(logits_KN)[:, None]
        else:
            log_probability_KN = logits_KN.log_softmax(dim=1)
        soft_target_NN, negentropy_N = self.soft_target_NN.to(logits_KN), self.negentropy_N.to(logits_KN)
        return soft_target_divergence(
            log_probability_KN, soft_target_NN.index_select(0, target_K), negentropy_N[target_K]
        )
