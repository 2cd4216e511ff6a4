import pytest
import torch

from smmd_lightning.losses import SMMDLoss
from smmd_lightning.losses.functional import quadratic_form_loss, smmd_form
from smmd_lightning.losses.toeplitz import LEAST, multiply, toeplitz_spectrum
from smmd_lightning.numbers import NumericVocabulary


def toeplitz(row_N):
    places_N = torch.arange(len(row_N))
    return row_N[(places_N - places_N[:, None]).abs()]


@pytest.mark.parametrize("size", [LEAST, 257, 400, 1000, 1111])
def test_the_product_is_that_with_the_matrix(size):
    matrix_NN = toeplitz(torch.rand(size, dtype=torch.float64))
    rows_KN = torch.randn(5, size, dtype=torch.float64)
    spectrum_F = toeplitz_spectrum(matrix_NN)
    assert spectrum_F.dim() == 1
    torch.testing.assert_close(multiply(rows_KN, spectrum_F), rows_KN @ matrix_NN, rtol=1e-11, atol=1e-11)


def test_only_large_toeplitz_matrices_have_a_spectrum():
    assert toeplitz_spectrum(toeplitz(torch.rand(LEAST - 1, dtype=torch.float64))) is None
    bent_NN = toeplitz(torch.rand(300, dtype=torch.float64))
    bent_NN[17, 200] = bent_NN[200, 17] = bent_NN[17, 200] + 1e-6
    assert toeplitz_spectrum(bent_NN) is None


def bound(values, **settings):
    return SMMDLoss(**settings).bind(NumericVocabulary(token_ids=range(len(values)), values=values))


@pytest.mark.parametrize(
    ("values", "settings", "dimensions"),
    [
        (range(1000), {}, 1),
        (range(1000), {"term": "smooth", "kernel": "laplace"}, 1),
        ([number / 4 for number in range(300)], {"bandwidths": (0.5, 4.0)}, 1),
        (range(360), {"distance": "circular", "period": 360}, 1),
        (range(10), {}, 2),
        ([*range(999), 2000], {}, 2),
        ([*range(500), *range(500)], {}, 2),  # each number twice, bare and with a space
        (range(1000), {"kernel": "shuffled"}, 2),
        (range(1000), {"kernel": "random"}, 2),
        (range(1000), {"distance": "log"}, 2),
    ],
)
def test_evenly_spaced_values_are_found_and_others_keep_their_matrix(values, settings, dimensions):
    assert bound(list(values), **settings).coupling.dim() == dimensions


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 10.0, 40.0])
@pytest.mark.parametrize("settings", [{}, {"term": "mmd"}, {"term": "smooth"}, {"kernel": "laplace"}, {"squash": None}])
def test_loss_and_gradient_in_float32_are_as_exact_as_with_the_matrix(settings, sharpness):
    loss = bound(list(range(1000)), **settings)
    kernel_NN = loss.kernel_matrix(loss.vocabulary.values)
    alpha = 1 / (2 * kernel_NN.sum(1).mean())
    mmd, smooth = {"smmd": (1.0, alpha), "mmd": (1.0, 0.0), "smooth": (0.0, alpha)}[loss.term]
    coupling_NN, diagonal_N = smmd_form(kernel_NN, mmd, smooth)
    generator = torch.Generator().manual_seed(3)
    logits_KN = sharpness * torch.randn(16, 1000, generator=generator)
    target_K = torch.randint(1000, (16,), generator=generator)
    target_K[:8] = logits_KN[:8].argmax(1)  # right, and surer the sharper

    def run(dtype, function):
        leaf_KN = logits_KN.to(dtype, copy=True).requires_grad_()
        cost_K = function(leaf_KN)
        (gradient_KN,) = torch.autograd.grad(cost_K.sum(), leaf_KN)
        return cost_K.detach().double(), gradient_KN.double()

    cost_K, gradient_KN = run(torch.float64, lambda leaf: quadratic_form_loss(leaf, target_K, coupling_NN, diagonal_N))
    plain = run(
        torch.float32, lambda leaf: quadratic_form_loss(leaf, target_K, coupling_NN.float(), diagonal_N.float())
    )
    fast = run(torch.float32, lambda leaf: loss(leaf, target_K))
    for exact, with_matrix, with_spectrum in zip((cost_K, gradient_KN), plain, fast, strict=True):
        tolerated = 3 * (with_matrix - exact).abs().max() + 2e-7 * exact.abs().max()
        assert (with_spectrum - exact).abs().max() <= tolerated
