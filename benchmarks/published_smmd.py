"""The published loss on full logits, written here from the paper's formulas, step by step as the stock path has it.

Source: Zuo et al., arXiv 2606.27731. Independent of our losses on purpose: it is peer and oracle in one.

Shape legend: B rows, T positions, V rows of the head, P positions, N numeric tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

IGNORED = -100


def full_logits_loss(
    logits_BTV: Tensor, labels_BT: Tensor, ids_N: Tensor, values_N: Tensor, weight: float = 1.0, sigma: float = 2.0
) -> Tensor:
    """CE + weight * SMMD, both means over their positions, from logits at every position.

    Args:
        logits_BTV: (B, T, V) logits.
        labels_BT: (B, T) labels, -100 where nothing is supervised; shifted here.
        ids_N: (N,) numeric tokens.
        values_N: (N,) their values.
        weight: Lambda.
        sigma: Bandwidth of the Gaussian kernel.
    """
    logits_PV = logits_BTV[:, :-1].float().flatten(0, 1)
    labels_P = labels_BT[:, 1:].flatten()
    ce = F.cross_entropy(logits_PV, labels_P, ignore_index=IGNORED)
    if weight == 0:
        return ce
    distance_NN = (values_N[:, None] - values_N[None]).abs()
    smallest, largest = distance_NN[distance_NN > 0].min(), distance_NN.max()
    if largest > smallest:
        squashed_NN = 1 + (distance_NN - smallest) * 8 / (largest - smallest)
        distance_NN = torch.where(distance_NN > 0, squashed_NN, distance_NN)
    kernel_NN = (-(distance_NN**2) / (2 * sigma**2)).exp()
    degree_N = kernel_NN.sum(1)
    laplacian_NN = torch.diag(degree_N) - kernel_NN
    alpha = 1 / (2 * degree_N.mean())
    probability_PN = logits_PV[:, ids_N].softmax(1)
    truth_PN = (labels_P[:, None] == ids_N[None]).float()
    residual_PN = (probability_PN - truth_PN)[truth_PN.any(1)]
    mmd = (residual_PN @ kernel_NN * residual_PN).sum(1)
    smooth = (residual_PN @ laplacian_NN * residual_PN).sum(1)
    return ce + weight * (mmd + alpha * smooth).mean()
