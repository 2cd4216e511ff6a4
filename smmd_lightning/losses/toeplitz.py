"""Products with a large matrix whose entries depend on i - j alone, for a thirteenth of the multiplications.

A kernel of the values is such a matrix where these are evenly spaced, as 0 to 999 are, and away from its diagonal it is
smooth. So it is cut into blocks: those on the diagonal, all alike, are kept; of all others a few numbers a block are.
At a thousand tokens the product is what a numeric loss costs, and two small products of matrices are faster than a
Fourier transform there and back.

Shape legend: K rows, N columns, of C blocks with W columns each, R numbers that stand for a block, Q = C R.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LEAST = 256
"""N from which blocks pay; below, the plain product is as fast."""
TOLERANCE = 1e-9
"""Singular values of the blocks off the diagonal that are dropped, against the largest: far below float32's 6e-8."""


class Blocks(NamedTuple):
    """A symmetric matrix as `multiply` wants it; its own single block where it does not pay to cut it.

    Attributes:
        near: (W, W + R) the block on the diagonal, and beside it the basis that blocks are projected on.
        between_QQ: What the numbers of one block add to those of another; zero from a block to itself.
        basis_RW: From the numbers of a block back to its columns.
    """

    near: Tensor
    between_QQ: Tensor
    basis_RW: Tensor


def cut(matrix_NN: Tensor) -> Blocks:
    """Returns what `multiply` needs in place of a symmetric matrix.

    Blocks off the diagonal lie in the span of the first left singular vectors of all of them side by side.

    Args:
        matrix_NN: (N, N) symmetric, float64.

    Returns:
        The blocks. One single block for a small matrix, one that is not constant along its diagonals, one whose size no
        suitable width divides, and one that is not smooth.
    """
    size = len(matrix_NN)
    whole = Blocks(matrix_NN, matrix_NN.new_empty(0, 0), matrix_NN.new_empty(0, size))
    width = _width(size)
    if width is None or not torch.allclose(matrix_NN[1:, 1:], matrix_NN[:-1, :-1], rtol=1e-10, atol=1e-12):
        return whole
    blocks_CCWW = matrix_NN.unflatten(1, (-1, width)).unflatten(0, (-1, width)).transpose(1, 2)
    right_WX = torch.cat([*blocks_CCWW[0, 1:], *blocks_CCWW[1:, 0]], dim=1)
    vectors_WW, singular_W, _ = torch.linalg.svd(right_WX, full_matrices=False)
    # At least one, which costs nothing: without a basis a matrix counts as a single block.
    rank = max(1, int((singular_W > TOLERANCE * singular_W[0]).sum()))
    if rank > width // 2:
        return whole
    basis_RW = vectors_WW[:, :rank].T
    between_CCRR = basis_RW @ blocks_CCWW @ basis_RW.T
    between_CCRR.diagonal(dim1=0, dim2=1).zero_()
    between_QQ = between_CCRR.transpose(1, 2).flatten(2, 3).flatten(0, 1)
    return Blocks(torch.cat([blocks_CCWW[0, 0], basis_RW.T], dim=1), between_QQ, basis_RW)


def multiply(rows_KN: Tensor, blocks: Blocks) -> Tensor:
    """Returns rows times the matrix, (K, N).

    Args:
        rows_KN: (K, N).
        blocks: The (N, N) matrix by `cut`; same dtype.

    Example:
        >>> places = torch.arange(300.0).double()
        >>> matrix = (-(places - places[:, None]).abs() / 30).exp()
        >>> rows = torch.eye(300).double()[[7, 299]]
        >>> blocks = cut(matrix)
        >>> len(matrix) // len(blocks.near), torch.allclose(multiply(rows, blocks), matrix[[7, 299]])
        (10, True)
    """
    near, between_QQ, basis_RW = blocks
    rank, width = basis_RW.shape
    if not rank:
        return rows_KN @ near
    both = rows_KN.reshape(-1, width) @ near
    far_KQ = both[:, width:].reshape(len(rows_KN), -1) @ between_QQ
    return both[:, :width].addmm(far_KQ.view(-1, rank), basis_RW).view_as(rows_KN)


def _width(size: int) -> int | None:
    """The divisor of the size that is nearest to where the two products cost least, if any is near."""
    if size < LEAST:
        return None
    best = 5 * size ** (1 / 3)
    widths = [width for width in range(2, size) if size % width == 0 and best / 2 <= width <= 2 * best]
    return min(widths, key=lambda width: abs(width - best), default=None)
