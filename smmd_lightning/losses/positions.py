"""Where numeric targets stand, and which of them make up one number.

Unusual: whole numbers are found by tensor arithmetic on the K positions, without a loop and without waiting
for the device.

Shape legend: K numeric target positions, N numeric tokens.

One real example: "at 12:05" in a model with one token a digit has K = 4 targets, two numbers of two digits
each, worth 10, 1, 10 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from smmd_lightning.vocabulary import NumericVocabulary


@dataclass(frozen=True)
class NumericPositions:
    """Where in the batch the K numeric targets stand, in reading order (by row, then by column).

    Attributes:
        row_K: (K,) int64 row of the batch.
        column_K: (K,) int64 position in the row; neighbours differ by one.
        log_normalizer_K: (K,) logsumexp of the whole head's logits at the position, for losses that ask for
            it by `needs_log_normalizer`; with it, `logsumexp(numeric_logits) - log_normalizer` is the log
            of the probability that the model gives to numeric tokens.
        after_point_K: (K,) bool, whether a decimal point stands right before the target, see `after_point`. None:
            nowhere.
    """

    row_K: Tensor
    column_K: Tensor
    log_normalizer_K: Tensor | None = None
    after_point_K: Tensor | None = None

    def numbers(self, begins_K: Tensor | None = None) -> Tensor:
        """Number the runs of neighbouring numeric tokens: the tokens of "2010" belong together.

        Args:
            begins_K: (K,) bool, True where the token starts a new number although its neighbour is numeric
                too (it carries a leading space).

        Returns:
            (K,) int64, 0 for the tokens of the first number, 1 for those of the second, …
        """
        return self._begins(begins_K).cumsum(0) - 1

    def decimal_numbers(self, begins_K: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Number the numbers, where one decimal point between two numeric tokens joins them: "3.75" is one number.

        Args:
            begins_K: As for `numbers`.

        Returns:
            (K,) int64 number, counted from 0, and (K,) bool, whether the token stands behind the point. In "1.2.3" all
            behind the first point is.
        """
        begins = self._begins(begins_K)
        run_K = begins.cumsum(0) - 1
        if self.after_point_K is None:
            return run_K, torch.zeros_like(begins)
        place_K = self._place()
        joins = torch.zeros_like(begins)
        joins[1:] = begins[1:] & self.after_point_K[1:] & (place_K[1:] == place_K[:-1] + 2)
        if begins_K is not None:
            joins &= ~begins_K
        number_K = (begins & ~joins).cumsum(0) - 1
        # A run is a fraction when its first token joined it to the run before.
        fraction = torch.zeros_like(run_K).index_add(0, run_K, joins.to(run_K))
        return number_K, fraction[run_K] > 0

    def _place(self) -> Tensor:
        return self.row_K * (1 << 32) + self.column_K  # no two rows touch

    def _begins(self, begins_K: Tensor | None) -> Tensor:
        place_K = self._place()
        begins = torch.ones_like(place_K, dtype=torch.bool)
        begins[1:] = place_K[1:] != place_K[:-1] + 1
        return begins if begins_K is None else begins | begins_K


def after_point(targets_BT: Tensor, row_K: Tensor, column_K: Tensor, point_id: int | None) -> Tensor | None:
    """Tell which targets stand right behind a decimal point.

    Args:
        targets_BT: (B, T) target ids.
        row_K: (K,) int64 row of each numeric target.
        column_K: (K,) int64 its column.
        point_id: The point's token. None: it is not known.

    Returns:
        (K,) bool, None where the point is not known.
    """
    if point_id is None:
        return None
    return (targets_BT[row_K, (column_K - 1).clamp(min=0)] == point_id) & (column_K > 0)


def head_log_normalizer(positions: NumericPositions | None) -> Tensor:
    """Return the `log_normalizer_K` that a loss has asked for by `needs_log_normalizer`."""
    assert positions is not None
    assert positions.log_normalizer_K is not None
    return positions.log_normalizer_K


def digits_after(number_K: Tensor, digits_K: Tensor) -> Tensor:
    """Count the digits that follow each token within its number: the power of ten it is worth.

    Args:
        number_K: (K,) int64 from `NumericPositions.numbers`.
        digits_K: (K,) int64 digits that each token writes.

    Returns:
        (K,) int64.

    Example:
        >>> digits_after(torch.tensor([0, 0, 0, 1]), torch.tensor([1, 3, 1, 2])).tolist()
        [4, 1, 0, 0]
    """
    written_K = digits_K.cumsum(0)
    # One slot a token is always enough, and needs no look at the device to size.
    end_K = torch.zeros_like(written_K).scatter_reduce(0, number_K, written_K, "amax")
    return end_K[number_K] - written_K


def number_tables(vocabulary: NumericVocabulary) -> dict[str, Tensor]:
    """Tables that `numbers_and_places` needs, by name.

    Returns:
        `digits_N`: (N,) int64 digits that a token writes; `begins_N`: (N,) bool, whether its leading space
        sets it apart from the number before.
    """
    return {"digits_N": vocabulary.digit_counts, "begins_N": vocabulary.begins_number}


def numbers_and_places(
    positions: NumericPositions | None, target_K: Tensor, digits_N: Tensor, begins_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Find the number that each target token belongs to, and the power of ten it is worth in it.

    Args:
        positions: Where the targets stand.
        target_K: (K,) int64 index of the target token.
        digits_N: From `number_tables`.
        begins_N: From `number_tables`.

    Returns:
        (K,) int64 number, counted from 0, and (K,) int64 place: 2 for the 3 of 345.

    Raises:
        ValueError: The positions are missing.
    """
    number_K = needed(positions).numbers(begins_N.to(target_K.device)[target_K])
    return number_K, digits_after(number_K, digits_N.to(target_K.device)[target_K])


def decimals_and_places(
    positions: NumericPositions | None, target_K: Tensor, digits_N: Tensor, begins_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Find the number that each target token belongs to, decimals included, and the power of ten it is worth in it.

    Args:
        positions: Where the targets stand, and which follow a decimal point.
        target_K: (K,) int64 index of the target token.
        digits_N: From `number_tables`.
        begins_N: From `number_tables`.

    Returns:
        (K,) int64 number, counted from 0, and (K,) int64 place: 1, 0, -1 for the tokens of "12.5".

    Raises:
        ValueError: The positions are missing.
    """
    begins_K, digits_K = begins_N.to(target_K.device)[target_K], digits_N.to(target_K.device)[target_K]
    number_K, fraction_K = needed(positions).decimal_numbers(begins_K)
    # Digits of the whole number behind each token, less those of its fraction.
    decimals = torch.zeros_like(number_K).index_add(0, number_K, digits_K * fraction_K)
    return number_K, digits_after(number_K, digits_K) - decimals[number_K]


def needed(positions: NumericPositions | None) -> NumericPositions:
    """Return the positions of a loss that needs them.

    Raises:
        ValueError: They are missing.
    """
    if positions is None:
        raise ValueError(
            "This loss looks at whole numbers, so it needs positions=NumericPositions(row_K, column_K): "
            "where in the batch each target stands."
        )
    return positions
