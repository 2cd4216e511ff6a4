"""Gaussian label smoothing on the numeric tokens: the plainest way to tell cross-entropy about distance.

Unusual: with `smoothing=1` it is `Dist2Loss` over numeric tokens at temperature 2 bandwidth^2; less
smoothing keeps a share of the one-hot target.

Shape legend: K numeric target positions, N numeric tokens.

One real example, target 4 among the digits at bandwidth 1: 0.40 on 4, 0.24 on 3 and on 5, 0.05 on 2 and on 6.

Source: label smoothing of Szegedy et al., CVPR 2016, arXiv 1512.00567, with Gaussian instead of uniform
weights; a baseline in Zausinger et al., ICML 2025, arXiv 2411.02083.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smmd_lightning.losses import kernels
from smmd_lightning.losses.base import NumericLoss, NumericPositions
from smmd_lightning.losses.functional import negentropy, soft_target_divergence
from smmd_lightning.losses.limits import check_number, check_width
from smmd_lightning.vocabulary import NumericVocabulary


class GaussianSmoothingLoss(NumericLoss):
    """KL(t || p) with t = (1 - e) onehot + e g, g_j = exp(-(v_j - v_target)^2 / 2 s^2) normalised.

    p is the softmax over the numeric tokens. The gradient is that of the cross-entropy to t; the entropy of
    t is taken off, so that the best prediction costs 0.
    """

    soft_target_NN: Tensor
    negentropy_N: Tensor

    def __init__(self, bandwidth: float = 1.0, smoothing: float = 1.0, squash: float | None = None) -> None:
        """Take the settings.

        Args:
            bandwidth: s, in units of the (squashed) distance.
            smoothing: e, the share of the target that is spread, from 0 to 1.
            squash: Rescale distances so that the smallest is 1 and the largest this; None or 0 for off.

        Raises:
            ValueError: A setting is outside its range.
        """
        super().__init__()
        check_width("bandwidth", bandwidth)
        check_number("smoothing", smoothing, most=1)
        self.bandwidth = bandwidth
        self.smoothing = smoothing
        self.squash = kernels.checked_squash(squash)

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Soft target of each possible target, one per row, and their negative entropies."""
        distances_NN = kernels.squash(kernels.pairwise_distances(vocabulary.values), self.squash)
        spread_NN = kernels.gaussian(distances_NN, self.bandwidth)
        spread_NN = spread_NN / spread_NN.sum(1, keepdim=True)
        one_hot_NN = torch.eye(len(vocabulary), dtype=spread_NN.dtype, device=spread_NN.device)
        soft_target_NN = torch.lerp(one_hot_NN, spread_NN, self.smoothing)
        return {"soft_target_NN": soft_target_NN, "negentropy_N": negentropy(soft_target_NN)}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Divergence from the smoothed target of each position."""
        soft_target_NN, negentropy_N = self.soft_target_NN.to(logits_KN), self.negentropy_N.to(logits_KN)
        soft_target_KN = soft_target_NN.index_select(0, target_K)
        return soft_target_divergence(logits_KN.log_softmax(dim=1), soft_target_KN, negentropy_N[target_K])
