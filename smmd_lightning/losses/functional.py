"""What losses compute on numeric logits: tensors in, tensors out.

Unusual: value and gradient of a quadratic form come out of one product with its matrix.

Shape legend: K numeric target positions, N numeric tokens.

One real example, SMMD on digits::

    coupling_NN, diagonal_N = smmd_form(kernel_NN, mmd=1.0, smoothness=smoothness_weight(kernel_NN))
    loss_K = quadratic_form_loss(logits_KN, target_K, coupling_NN, diagonal_N)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def smmd_form(kernel_NN: Tensor, mmd: float, smoothness: float) -> tuple[Tensor, Tensor]:
    """Write mmd r' K r + smoothness r' L r as one quadratic form r' A r.

    r' K r is the squared maximum mean discrepancy, r' L r = 1/2 sum_ij K_ij (r_i - r_j)^2 the roughness of
    the residual on the kernel's graph; both for r = p - q. With L = D - K::

        A = (mmd - smoothness) K + smoothness D

    The diagonal is kept apart: inside the matrix product its large entries cost float32 a digit of the
    gradient at a thousand tokens.

    Args:
        kernel_NN: (N, N) symmetric kernel.
        mmd: Weight of K.
        smoothness: Weight of the graph Laplacian L; its degrees D_ii = sum_j K_ij count self-loops.

    Returns:
        The two parts of A: the symmetric (N, N) matrix and the (N,) diagonal.
    """
    return (mmd - smoothness) * kernel_NN, smoothness * kernel_NN.sum(1)


def quadratic_form_loss(logits_KN: Tensor, target_K: Tensor, coupling_NN: Tensor, diagonal_N: Tensor) -> Tensor:
    """Compute r' (M + diag(d)) r with r = softmax(logits) - onehot(target) at each position.

    Args:
        logits_KN: (K, N) float32 or float64.
        target_K: (K,) int64 index of the true token.
        coupling_NN: (N, N) symmetric M, same dtype.
        diagonal_N: (N,) d, same dtype.

    Returns:
        (K,) in the dtype of the logits; 0 where the prediction is certain and right. Differentiable once.

    Example:
        >>> quadratic_form_loss(torch.zeros(1, 2), torch.tensor([0]), torch.eye(2), torch.zeros(2))
        tensor([0.5000])
    """
    return _QuadraticForm.apply(logits_KN.softmax(dim=1), target_K, coupling_NN, diagonal_N)


def expected_distance(
    logits_KN: Tensor, target_K: Tensor, distances_NN: Tensor, log_normalizer_K: Tensor | None = None
) -> Tensor:
    """Compute sum_j p_j d(v_j, v_target): the earth mover's distance of p = softmax(logits) to one-hot.

    Args:
        logits_KN: (K, N) logits.
        target_K: (K,) int64 index of the true token.
        distances_NN: (N, N) distances, same dtype.
        log_normalizer_K: (K,) logarithm of what the exponentials are divided by, for p over more tokens than these
            N, of which the others cost nothing. None: over these alone.

    Returns:
        (K,).
    """
    if log_normalizer_K is None:
        probability_KN = logits_KN.softmax(dim=1)
    else:
        probability_KN = (logits_KN - log_normalizer_K[:, None]).exp()
    # On a CPU four times as fast as `distances_NN[target_K]`.
    return (probability_KN * distances_NN.index_select(0, target_K)).sum(1)


def soft_target_divergence(log_probability_KN: Tensor, soft_target_KN: Tensor, negentropy_K: Tensor) -> Tensor:
    """Compute KL(t || p) = sum_j t_j (log t_j - log p_j): the cross-entropy to t, less what no p can avoid.

    Args:
        log_probability_KN: (K, N) log p; its rows may sum to less than one.
        soft_target_KN: (K, N) t, rows that sum to one; zeros are fine.
        negentropy_K: (K,) sum_j t_j log t_j, see `negentropy`; there are only N of them, so they are no step's work.

    Returns:
        (K,).
    """
    return negentropy_K - (soft_target_KN * log_probability_KN).sum(1)


def negentropy(soft_target_KN: Tensor) -> Tensor:
    """Compute sum_j t_j log t_j of each row, (K,), with 0 log 0 = 0."""
    return torch.xlogy(soft_target_KN, soft_target_KN).sum(1)


class _QuadraticForm(torch.autograd.Function):
    """The product A r serves the gradient as well: d(r' A r)/dp = 2 A r, A symmetric."""

    @staticmethod
    def forward(ctx: Any, probability_KN: Tensor, target_K: Tensor, coupling_NN: Tensor, diagonal_N: Tensor) -> Tensor:
        minus_one_K1 = probability_KN.new_full((len(target_K), 1), -1.0)
        residual_KN = probability_KN.scatter_add(1, target_K[:, None], minus_one_K1)
        pull_KN = (residual_KN @ coupling_NN).addcmul_(residual_KN, diagonal_N)
        ctx.save_for_backward(pull_KN)
        return residual_KN.mul_(pull_KN).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_K: Tensor) -> tuple[Tensor, None, None, None]:
        (pull_KN,) = ctx.saved_tensors
        return pull_KN * (2 * grad_K)[:, None], None, None, None
