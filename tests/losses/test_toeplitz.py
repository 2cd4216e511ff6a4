import pytest
import torch

from smmd_lightning.losses import SMMDLoss
from smmd_lightning.losses.functional import quadratic_form_loss, smmd_form
from smmd_lightning.losses.toeplitz import LEAST, Blocks, cut, multiply
from smmd_lightning.vocabulary import NumericVocabulary


def toeplitz(row_N):
    places_N = torch.arange(len(row_N))
    return row_N[(places_N - places_N[:, None]).abs()]


def smooth_row(size, reach=100.0):
    """Smooth but for a bend at the diagonal and the diagonal itself, as a squashed kernel is."""
    row_N = (-((1 + torch.arange(size).double() / reach) ** 2)).exp()
    row_N[0] = 3.0
    return row_N


@pytest.mark.parametrize("size", [LEAST, 400, 1000, 1110, 1440])
@pytest.mark.parametrize("reach", [3.0, 100.0, 1e4])
def test_the_product_is_that_with_the_matrix(size, reach):
    matrix_NN = toeplitz(smooth_row(size, reach))
    rows_KN = torch.randn(5, size, dtype=torch.float64)
    blocks = cut(matrix_NN)
    assert len(blocks.basis_RW) > 0
    torch.testing.assert_close(multiply(rows_KN, blocks), rows_KN @ matrix_NN, rtol=0, atol=1e-7)


@pytest.mark.parametrize("diagonal", [0.0, 2.0])
def test_a_matrix_with_nothing_off_its_diagonal(diagonal):
    rows_KN = torch.randn(5, 1000, dtype=torch.float64)
    product_KN = multiply(rows_KN, cut(diagonal * torch.eye(1000, dtype=torch.float64)))
    torch.testing.assert_close(product_KN, diagonal * rows_KN, rtol=0, atol=0)


def test_every_entry_of_the_matrix_comes_back():
    matrix_NN = toeplitz(smooth_row(1000))
    assert (multiply(torch.eye(1000, dtype=torch.float64), cut(matrix_NN)) - matrix_NN).abs().max() < 1e-9


def test_what_does_not_pay_to_cut_stays_whole():
    bent_NN = toeplitz(smooth_row(300))
    bent_NN[17, 200] = bent_NN[200, 17] = bent_NN[17, 200] + 1e-6
    for matrix_NN in (
        toeplitz(smooth_row(LEAST - 1)),
        bent_NN,
        toeplitz(smooth_row(997)),  # no width divides a prime
        toeplitz(torch.rand(1000, dtype=torch.float64)),  # not smooth
    ):
        near, between_QQ, basis_RW = blocks = cut(matrix_NN)
        assert near is matrix_NN
        assert between_QQ.numel() == basis_RW.numel() == 0
        rows_KN = torch.randn(3, len(matrix_NN), dtype=torch.float64)
        torch.testing.assert_close(multiply(rows_KN, blocks), rows_KN @ matrix_NN, rtol=0, atol=0)


def bound(values, **settings):
    return SMMDLoss(**settings).bind(NumericVocabulary(token_ids=range(len(values)), values=values))


@pytest.mark.parametrize(
    ("values", "settings", "is_cut"),
    [
        (range(1000), {}, True),
        (range(1000), {"term": "smooth", "kernel": "laplace"}, True),
        (range(1000), {"squash": None}, True),
        ([number / 4 for number in range(300)], {"bandwidths": (0.5, 4.0)}, True),
        (range(10), {}, False),
        ([*range(999), 2000], {}, False),
        ([*range(500), *range(500)], {}, False),  # each number twice, bare and with a space
        (range(360), {"distance": "circular", "period": 360}, False),  # a bend half-way round as well
        (range(1000), {"kernel": "shuffled"}, False),
        (range(1000), {"kernel": "random"}, False),
        (range(1000), {"distance": "log"}, False),
    ],
)
def test_evenly_spaced_values_are_found_and_others_keep_their_matrix(values, settings, is_cut):
    loss = bound(list(values), **settings)
    assert (len(loss.near) < len(values)) == (len(loss.basis_RW) > 0) == is_cut


def test_a_product_takes_a_thirteenth_of_the_multiplications():
    loss = bound(list(range(1000)))
    assert 1000 * loss.near.shape[1] + loss.between_QQ.numel() + 1000 * len(loss.basis_RW) < 1000**2 / 13


def test_binding_again_replaces_the_blocks():
    loss = bound(list(range(1000)))
    loss.bind(NumericVocabulary(token_ids=range(10), values=range(10)))
    again, fresh = loss(torch.eye(10), torch.arange(10)), bound(list(range(10)))(torch.eye(10), torch.arange(10))
    torch.testing.assert_close(again, fresh, rtol=0, atol=0)


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 10.0, 40.0])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"term": "mmd"},
        {"term": "smooth"},
        {"kernel": "laplace"},
        {"squash": None},
        {"smoothness": 1.0},  # nothing left off the diagonal
        {"bandwidths": (0.02,)},  # nor here
    ],
)
def test_loss_and_gradient_in_float32_are_as_exact_as_with_the_matrix(settings, sharpness):
    loss = bound(list(range(1000)), **settings)
    kernel_NN = loss.kernel_matrix(loss.vocabulary.values)
    alpha = 1 / (2 * kernel_NN.sum(1).mean()) if loss.smoothness == "auto" else loss.smoothness
    mmd, smooth = {"smmd": (1.0, alpha), "mmd": (1.0, 0.0), "smooth": (0.0, alpha)}[loss.term]
    coupling_NN, diagonal_N = smmd_form(kernel_NN, mmd, smooth)
    generator = torch.Generator().manual_seed(3)
    logits_KN = sharpness * torch.randn(16, 1000, generator=generator)
    target_K = torch.randint(1000, (16,), generator=generator)
    target_K[:8] = logits_KN[:8].argmax(1)  # right, and surer the sharper

    def whole(matrix_NN):
        return Blocks(matrix_NN, matrix_NN.new_empty(0, 0), matrix_NN.new_empty(0, 1000))

    def run(dtype, function):
        leaf_KN = logits_KN.to(dtype, copy=True).requires_grad_()
        cost_K = function(leaf_KN)
        (gradient_KN,) = torch.autograd.grad(cost_K.sum(), leaf_KN)
        return cost_K.detach().double(), gradient_KN.double()

    cost_K, gradient_KN = run(
        torch.float64, lambda leaf: quadratic_form_loss(leaf, target_K, whole(coupling_NN), diagonal_N)
    )
    plain = run(
        torch.float32, lambda leaf: quadratic_form_loss(leaf, target_K, whole(coupling_NN.float()), diagonal_N.float())
    )
    fast = run(torch.float32, lambda leaf: loss(leaf, target_K))
    for exact, with_matrix, with_blocks in zip((cost_K, gradient_KN), plain, fast, strict=True):
        tolerated = 3 * (with_matrix - exact).abs().max() + 2e-7 * exact.abs().max()
        assert (with_blocks - exact).abs().max() <= tolerated
