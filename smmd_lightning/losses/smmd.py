"""Smooth MMD: the loss this project is about, with its ablations.

Unusual: term, kernel and distance only choose a matrix A; whatever they are, a position costs r' A r.

Shape legend: K numeric target positions, N numeric tokens.

One real example, the published loss for a tokenizer with one token a digit::

    loss = SMMDLoss().bind(NumericVocabulary.from_tokenizer(tokenizer))

Source: Zuo et al., "Enhancing Numerical Prediction in LLMs via Smooth MMD Alignment", ICML 2026, arXiv
    2606.27731.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from smmd_lightning.losses import kernels
from smmd_lightning.losses.base import NumericLoss, NumericPositions
from smmd_lightning.losses.functional import quadratic_form_loss, smmd_form
from smmd_lightning.losses.limits import LARGEST, check_choice, check_number, check_width
from smmd_lightning.vocabulary import NumericVocabulary

Term = Literal["smmd", "mmd", "smooth"]
Kernel = Literal["gaussian", "laplace", "energy", "identity", "random", "shuffled"]
KERNELS = ("gaussian", "laplace", "energy", "identity", "random", "shuffled")


class SMMDLoss(NumericLoss):
    """Smooth maximum mean discrepancy between the predicted and the true numeric token.

    With p the softmax over the numeric tokens alone, q the one-hot target and r = p - q::

        K_ij = k(d(v_i, v_j))                      L = D - K,  D_ii = sum_j K_ij
        mmd    = r' K r
        smooth = alpha r' L r,  alpha = 1 / (2 mean_i D_ii)
        smmd   = mmd + smooth

    Tokens of one value ("7" and " 7") are at distance 0. For `mmd` the twin of the target is therefore as
    good as the target and costs nothing. The smoothness term compares r token by token and does not merge
    twins, so under `smmd` and `smooth` a model sure of the twin pays alpha (D_ii + D_jj), about 1. Which of
    the two forms stands there is for the text before to decide, so cross-entropy teaches it as well.

    `mmd` grows with the distance of a certain wrong answer all the way. The smoothness term also depends on
    how many neighbours a token has, so at the ends of the scale, far from the target, `smmd` may fall off a
    little.

    Example:
        >>> import torch
        >>> from smmd_lightning.vocabulary import NumericVocabulary
        >>> loss = SMMDLoss().bind(NumericVocabulary(token_ids=range(10), values=range(10)))
        >>> sure = 20 * torch.eye(10)[[4, 3, 9]]
        >>> [round(cost, 2) for cost in loss(sure, torch.tensor([4, 4, 4])).tolist()]
        [0.0, 1.36, 2.63]
    """

    coupling_NN: Tensor
    """The matrix M of A = M + diag(d)."""
    diagonal_N: Tensor

    def __init__(
        self,
        term: Term = "smmd",
        kernel: Kernel = "gaussian",
        bandwidths: Sequence[float] = (2.0,),
        squash: float | None = 9.0,
        smoothness: float | Literal["auto"] = "auto",
        distance: kernels.Distance = "absolute",
        period: float | None = None,
        seed: int | None = None,
    ) -> None:
        """Take the settings; nothing is computed before `bind`.

        Args:
            term: `smmd`, or one of its two terms alone.
            kernel: `gaussian` exp(-d^2 / 2 s^2) or `laplace` exp(-d / s). With `term: mmd` also `energy`, -d / 2,
                which makes the loss the CRPS of the token's value and has no bandwidth, and `identity`, 1 for equal
                values, which makes it the Brier score. Two controls that should not help: `random`, a kernel that
                ignores values, and `shuffled`, the Gaussian of randomly swapped values.
            bandwidths: s, in units of the (squashed) distance; the kernel is the average over them.
            squash: Distances are rescaled so that the smallest is 1 and the largest this; None or 0 for off.
            smoothness: alpha; `auto` is the published 1 / (2 mean degree).
            distance: `absolute`, `log` or `circular`; see `kernels.pairwise_distances`.
            period: Of the circular distance, in units of the values: 60 where tokens are whole minutes.
            seed: Of the `random` and `shuffled` kernels. None: the run's seed, as torch knows it at `bind`.

        Raises:
            ValueError: A setting is outside its range, or the settings contradict each other.
        """
        super().__init__()
        check_choice("term", term, ("smmd", "mmd", "smooth"))
        check_choice("kernel", kernel, KERNELS)
        if kernel in ("energy", "identity") and term != "mmd":
            raise ValueError(f"kernel={kernel!r} is a score by itself: set term='mmd', got term={term!r}.")
        check_choice("distance", distance, ("absolute", "log", "circular"))
        if not bandwidths:
            raise ValueError("bandwidths must hold at least one number, got none.")
        for bandwidth in bandwidths:
            check_width("each of bandwidths", bandwidth)
        if smoothness != "auto":
            check_number("smoothness, where not 'auto',", smoothness, most=LARGEST)
        if (distance == "circular") != (period is not None):
            raise ValueError(
                "distance='circular' and period belong together (60 for minutes), "
                f"got distance={distance!r} and period={period}."
            )
        if period is not None:
            check_width("period", period)
        self.term = term
        self.kernel = kernel
        self.bandwidths = tuple(bandwidths)
        self.squash = kernels.checked_squash(squash)
        self.smoothness = smoothness
        self.distance = distance
        self.period = period
        self.seed = seed

    def kernel_matrix(self, values_N: Tensor) -> Tensor:
        """(N, N) kernel of the values, in their dtype; entries in [0, 1], of `energy` not above 0."""
        seed = torch.initial_seed() if self.seed is None else self.seed
        if self.kernel == "random":
            return kernels.random_kernel(values_N, seed)
        if self.kernel == "shuffled":
            values_N = kernels.shuffle_values(values_N, seed)
        distances_NN = kernels.pairwise_distances(values_N, self.distance, self.period)
        if self.kernel == "identity":
            return (distances_NN == 0).to(values_N)
        if self.kernel == "energy":
            return -kernels.squash(distances_NN, self.squash) / 2
        shape = kernels.laplace if self.kernel == "laplace" else kernels.gaussian
        return kernels.average_kernel(kernels.squash(distances_NN, self.squash), shape, self.bandwidths)

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Compute A = a K + b L in float64, in two parts."""
        kernel_NN = self.kernel_matrix(vocabulary.values)
        mmd, smooth = float(self.term != "smooth"), 0.0
        if self.term != "mmd":
            smooth = kernels.smoothness_weight(kernel_NN) if self.smoothness == "auto" else self.smoothness
        coupling_NN, diagonal_N = smmd_form(kernel_NN, mmd, smooth)
        return {"coupling_NN": coupling_NN, "diagonal_N": diagonal_N}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Compute r' A r of each position."""
        coupling_NN, diagonal_N = self.coupling_NN.to(logits_KN), self.diagonal_N.to(logits_KN)
        return quadratic_form_loss(logits_KN, target_K, coupling_NN, diagonal_N)
