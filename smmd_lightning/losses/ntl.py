"""Number Token Loss, in its Wasserstein form and in its regression form.

Unusual: `reweigh` compares numeric with all other tokens, so it needs the head's log-normaliser beside the
numeric logits; the objective and `from_logits` hand it in.

Shape legend: K numeric target positions, N numeric tokens.

One real example: for the target 4, half the probability on 3 and half on 5 costs 1 under `NTLWASLoss` and
nothing under `NTLRegressionLoss`, whose expectation is right.

Source: Zausinger et al., "Regress, Don't Guess: A Regression-like Loss on Number Tokens for Language Models",
ICML 2025, arXiv 2411.02083. Equal to the authors' package `ntloss`, which reweighs unless told otherwise; the
paper's experiments did not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from smmd_lightning.losses import kernels
from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.functional import expected_distance
from smmd_lightning.losses.limits import check_choice
from smmd_lightning.losses.positions import NumericPositions, head_log_normalizer
from smmd_lightning.vocabulary import NumericVocabulary

ERRORS: dict[str, Callable[..., Tensor]] = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}
OFF_NUMBER_FACTOR = 1.01
"""How much more a token that is no number costs than the worst number, when reweighing."""


class NTLWASLoss(NumericLoss):
    """NTL-WAS: expected distance to the target, sum_j p_j |v_j - v_target|.

    With p the softmax over the numeric tokens alone; zero for a certain and right prediction. Tokens of one
    value are at distance 0, so "7" for " 7" costs nothing.
    """

    distances_NN: Tensor
    """Distances; when reweighing less `off_number`, what probability on other tokens costs."""
    off_number: Tensor

    def __init__(self, squash: float | None = None, reweigh: bool = False) -> None:
        """Take the settings.

        Args:
            squash: Rescale distances so that the smallest is 1 and the largest this; None or 0 for off.
            reweigh: Let probability on tokens that are no numbers cost 1.01 times the largest distance.

        Raises:
            ValueError: `squash` is below 1.
        """
        super().__init__()
        self.needs_log_normalizer = self.reweigh = reweigh
        self.squash = kernels.checked_squash(squash)

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Distances between all numeric tokens."""
        distances_NN = kernels.squash(kernels.pairwise_distances(vocabulary.values), self.squash)
        off_number = (OFF_NUMBER_FACTOR if self.reweigh else 0.0) * distances_NN.max()
        return {"distances_NN": distances_NN - off_number, "off_number": off_number}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Expected distance of each position."""
        distances_NN = self.distances_NN.to(logits_KN)
        if not self.reweigh:
            return expected_distance(logits_KN, target_K, distances_NN)
        # With p over the whole head: sum_j p_j d_j + (1 - sum_j p_j) w = w + sum_j p_j (d_j - w).
        log_normalizer_K = head_log_normalizer(positions).to(logits_KN)
        loss_K = expected_distance(logits_KN, target_K, distances_NN, log_normalizer_K)
        return self.off_number.to(logits_KN) + loss_K


class NTLRegressionLoss(NumericLoss):
    """NTL-MSE and its kin: error of the expected value, f(sum_j p_j v_j, v_target).

    Zero for a certain and right prediction, but also wherever the expectation happens to be right.
    """

    values_N: Tensor

    def __init__(self, error: Literal["mse", "mae", "huber"] = "mse", reweigh: bool = False) -> None:
        """Take the settings.

        Args:
            error: `mse` (NTL-MSE), `mae`, or `huber` with its bend at 1.
            reweigh: Let probability on tokens that are no numbers cost 1.01 times the largest error.

        Raises:
            ValueError: `error` is none of the three.
        """
        super().__init__()
        self.needs_log_normalizer = self.reweigh = reweigh
        check_choice("error", error, tuple(ERRORS))
        self.error = error

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Values of the numeric tokens."""
        return {"values_N": vocabulary.values}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Error of the expected value of each position."""
        values_N = self.values_N.to(logits_KN)
        expectation_K = logits_KN.softmax(dim=1) @ values_N
        error = ERRORS[self.error]
        loss_K = error(expectation_K, values_N[target_K], reduction="none")
        if not self.reweigh:
            return loss_K
        mass_K = (logits_KN.logsumexp(1) - head_log_normalizer(positions).to(logits_KN)).exp()
        return mass_K * loss_K + (1 - mass_K) * OFF_NUMBER_FACTOR * error(values_N[0], values_N[-1])
