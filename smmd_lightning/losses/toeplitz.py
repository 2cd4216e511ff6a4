"""Products with a large matrix whose entries depend on i - j alone, in N log N instead of N^2.

A kernel of the values is such a matrix where these are evenly spaced, as 0 to 999 are. At a thousand tokens the product
is what a numeric loss costs, and the spectrum is a thousandth of the matrix to read.

Shape legend: K rows, N columns, F frequencies.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 256
"""N from which the Fourier transform pays; below, the plain product is as fast."""


def toeplitz_spectrum(matrix_NN: Tensor) -> Tensor | None:
    """Returns what `multiply` needs in place of a symmetric matrix, or None where the matrix itself is as good.

    The matrix is the corner of a circulant one of L >= 2 N columns, which the Fourier transform makes diagonal.

    Args:
        matrix_NN: (N, N) symmetric, float64.

    Returns:
        (F,) real, with L = 2 (F - 1); None for a small matrix, and for one that is not constant along its diagonals.
    """
    size = len(matrix_NN)
    if size < LEAST or not torch.allclose(matrix_NN[1:, 1:], matrix_NN[:-1, :-1], rtol=1e-10, atol=1e-12):
        return None
    length = _fast_length(2 * size)
    row = matrix_NN[0]
    circle = torch.cat([row, row.new_zeros(length - 2 * size + 1), row[1:].flip(0)])
    return torch.fft.rfft(circle).real


def multiply(rows_KN: Tensor, coupling: Tensor) -> Tensor:
    """Returns rows times a symmetric matrix, (K, N).

    Args:
        rows_KN: (K, N).
        coupling: The (N, N) matrix, or its (F,) spectrum by `toeplitz_spectrum`; same dtype.

    Example:
        >>> places = torch.arange(300.0)
        >>> matrix = (-(places - places[:, None]).abs() / 30).exp()
        >>> rows = torch.eye(300)[[7, 299]]
        >>> torch.allclose(multiply(rows, toeplitz_spectrum(matrix)), matrix[[7, 299]], atol=1e-6)
        True
    """
    if coupling.dim() == 2:
        return rows_KN @ coupling
    length = 2 * (len(coupling) - 1)
    return torch.fft.irfft(torch.fft.rfft(rows_KN, n=length) * coupling, n=length)[:, : rows_KN.shape[1]]


def _fast_length(least: int) -> int:
    """The smallest even length from `least` on that has no prime factor above 5."""
    length = least + least % 2
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 2
