"""The rivals: against a peer package, the formulas written as loops, and what each promises."""

import math

import ntloss
import pytest
import torch
from tokenizers import Tokenizer, models
from torch.nn import functional as F
from transformers import PreTrainedTokenizerFast

from smmd_lightning.losses import (
    DigitEntropyLoss,
    Dist2Loss,
    GaussianSmoothingLoss,
    MixCELoss,
    NTILLoss,
    NTLNumberLoss,
    NTLRegressionLoss,
    NTLWASLoss,
    NumericPositions,
    PlaceWeightedLoss,
    RAFTLoss,
    SMMDLoss,
)
from smmd_lightning.vocabulary import NumericVocabulary

DIGITS = NumericVocabulary(range(10), range(10))


def at(*columns: int, rows: list[int] | None = None, logits: torch.Tensor | None = None) -> NumericPositions:
    """Positions in one row (or in `rows`); with logits, of a model whose head knows these tokens alone."""
    row = torch.tensor(rows or [0] * len(columns))
    return NumericPositions(row, torch.tensor(columns), None if logits is None else logits.detach().logsumexp(1))


def random_logits(*shape: int) -> torch.Tensor:
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


ALL = {
    "ntl-was": NTLWASLoss,
    "ntl-was-squashed-reweighed": lambda: NTLWASLoss(squash=4.0, reweigh=True),
    "ntl-mse": NTLRegressionLoss,
    "ntl-mae": lambda: NTLRegressionLoss("mae"),
    "ntl-huber-reweighed": lambda: NTLRegressionLoss("huber", reweigh=True),
    "ntil": NTILLoss,
    "ntil-soft": lambda: NTILLoss(hard=False, temperature=0.5),
    "dist2": Dist2Loss,
    "dist2-numeric-only": lambda: Dist2Loss(whole_head=False, temperature=3.0),
    "gaussian": GaussianSmoothingLoss,
    "gaussian-partial": lambda: GaussianSmoothingLoss(bandwidth=2.0, smoothing=0.3),
    "del": DigitEntropyLoss,
    "mixce": MixCELoss,
    "raft": RAFTLoss,
    "raft-relative": lambda: RAFTLoss("relative"),
    "ntl-number": NTLNumberLoss,
    "place-smmd": lambda: PlaceWeightedLoss(SMMDLoss()),
    "place-ntl-reweighed": lambda: PlaceWeightedLoss(NTLWASLoss(reweigh=True), base=10.0),
}
every_loss = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
WITHOUT_DISTANCE = ("del", "mixce")
DETACHED = ("ntil", "mixce")  # their gradients are not those of their values; see their own tests
SOFT_TARGETS = ("dist2", "dist2-numeric-only", "gaussian", "gaussian-partial")
zero_at_certainty = pytest.mark.parametrize(
    "make", [pytest.param(make, id=name) for name, make in ALL.items() if name not in SOFT_TARGETS]
)


@pytest.mark.parametrize("name", sorted(set(ALL) - set(WITHOUT_DISTANCE)))
def test_nearer_costs_less(name):
    loss = ALL[name]().bind(DIGITS)
    logits = torch.full((10, 10), -12.0) + 24 * torch.eye(10)  # row i is sure of i
    costs = loss(logits, torch.full((10,), 4), at(*range(0, 20, 2), logits=logits))
    assert costs.argmin() == 4
    assert (costs[4:].diff() > 0).all()
    assert (costs[:5].diff() < 0).all()


@zero_at_certainty
def test_certainty_costs_nothing(make):
    logits = 1000 * torch.eye(10)
    costs = make().bind(DIGITS)(logits, torch.arange(10), at(*range(10), logits=logits))
    torch.testing.assert_close(costs, torch.zeros(10), atol=1e-6, rtol=0)


@pytest.mark.parametrize("make", [ALL[name] for name in SOFT_TARGETS], ids=SOFT_TARGETS)
def test_predicting_the_soft_target_costs_nothing_and_certainty_something(make):
    loss = make().bind(DIGITS)
    target = torch.arange(10)
    logits = loss.soft_target_NN.clamp(min=1e-30).log()
    torch.testing.assert_close(loss(logits, target, at(*range(10), logits=logits)), torch.zeros(10), atol=1e-6, rtol=0)
    sure = 30 * torch.eye(10)
    assert (loss(sure, target, at(*range(10), logits=sure)) > 0.5).all()


@pytest.mark.parametrize("name", sorted(set(ALL) - set(DETACHED)))
def test_gradient_in_float64(name):
    make = ALL[name]
    loss = make().bind(DIGITS)
    target = torch.tensor([3, 0, 9, 4])
    positions = at(0, 1, 2, 7, logits=random_logits(4, 10) + 1)
    assert torch.autograd.gradcheck(lambda z: loss(z, target, positions), random_logits(4, 10).requires_grad_())


@every_loss
def test_tables_are_bound_on_meta_computed_in_float32_and_not_saved(make):
    with torch.device("meta"):
        loss = make().bind(DIGITS)
    loss.to(torch.bfloat16)
    logits = random_logits(3, 10).bfloat16()
    positions = at(0, 1, 2, logits=logits.float())
    costs = loss(logits, torch.tensor([1, 2, 3]), positions)
    assert costs.dtype == torch.float32
    torch.testing.assert_close(costs, make().bind(DIGITS)(logits.float(), torch.tensor([1, 2, 3]), positions))
    assert not loss.state_dict()


@every_loss
def test_no_position_at_all(make):
    logits = torch.randn(1, 4, 20, requires_grad=True)
    make().bind(DIGITS).from_logits(logits, torch.full((1, 4), -100)).backward()
    assert torch.equal(logits.grad, torch.zeros(1, 4, 20))


# NTL ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():
    table = {entry: token_id for token_id, entry in enumerate(["[UNK]", "a", *"9876543210", "b", "c"])}
    model = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]")


@pytest.mark.parametrize("reweigh", [False, True])
@pytest.mark.parametrize(
    ("ours", "peer", "settings"),
    [
        (NTLWASLoss, ntloss.NTLoss, {}),
        (lambda reweigh: NTLWASLoss(5.0, reweigh), ntloss.NTLoss, {"squash_factor": 5.0}),
        (lambda reweigh: NTLRegressionLoss("mse", reweigh), ntloss.NTLossDotProduct, {}),
        (
            lambda reweigh: NTLRegressionLoss("mae", reweigh),
            ntloss.NTLossDotProduct,
            {"loss_function": F.l1_loss},
        ),
        (
            lambda reweigh: NTLRegressionLoss("huber", reweigh),
            ntloss.NTLossDotProduct,
            {"loss_function": F.huber_loss},
        ),
    ],
    ids=["was", "was-squashed", "mse", "mae", "huber"],
)
def test_equal_to_the_authors_package_on_digits(ours, peer, settings, reweigh, tokenizer):
    theirs = peer(tokenizer, vocab_size=18, reweigh=reweigh, **settings)
    loss = ours(reweigh=reweigh).bind(NumericVocabulary.from_tokenizer(tokenizer))
    logits = random_logits(2, 6, 18).float().requires_grad_()
    labels = torch.tensor([[2, 1, 5, 11, -100, 0], [7, 7, 12, -100, 3, 10]])
    expected = theirs(logits, labels)
    got = loss.from_logits(logits, labels, shift=False)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)
    expected_gradient, gradient = (torch.autograd.grad(value, logits)[0] for value in (expected, got))
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-6)


def test_a_right_expectation_is_free_for_regression_and_not_for_wasserstein():
    logits = torch.full((1, 10), -30.0)
    logits[0, [3, 5]] = 0.0
    assert NTLRegressionLoss().bind(DIGITS)(logits, torch.tensor([4])).item() == pytest.approx(0, abs=1e-9)
    assert NTLWASLoss().bind(DIGITS)(logits, torch.tensor([4])).item() == pytest.approx(1)


def test_reweighing_needs_the_normaliser_and_says_so():
    with pytest.raises(ValueError, match=r"NTLWASLoss as set .* needs positions\.log_normalizer_K"):
        NTLWASLoss(reweigh=True).bind(DIGITS)(torch.zeros(1, 10), torch.tensor([0]), at(0))


def test_reweighed_text_costs_more_than_the_worst_number():
    loss = NTLWASLoss(reweigh=True).bind(DIGITS)
    logits, labels = torch.zeros(1, 1, 20), torch.tensor([[0]])
    logits[..., 15] = 100
    assert loss.from_logits(logits, labels, shift=False).item() == pytest.approx(9 * 1.01)


# NTIL ---------------------------------------------------------------------------------------------


def ntil_looped(logits, targets, numbers, growth=0.2, relative=0.2, magnitude=0.2):
    """One number after the other; `numbers` lists the positions of each number's tokens."""
    costs = [0.0] * len(targets)
    for members in numbers:
        x = sum(int(logits[k].argmax()) * 10 ** (len(members) - 1 - i) for i, k in enumerate(members))
        y = sum(targets[k] * 10 ** (len(members) - 1 - i) for i, k in enumerate(members))
        whole = relative * abs(x - y) / (max(x, y) + 1) + magnitude * math.log((max(x, y) + 1) / (min(x, y) + 1))
        for i, k in enumerate(members):
            p = logits[k].softmax(0)
            emd = sum(p[j].item() * abs(j - targets[k]) for j in range(10))
            costs[k] = emd * (1 + growth) ** (len(members) - 1 - i) + whole
    return torch.tensor(costs, dtype=torch.float64)


def test_ntil_equals_the_formulas_written_as_loops():
    logits, targets = random_logits(9, 10), [3, 0, 5, 7, 1, 2, 0, 0, 9]
    positions = at(1, 2, 3, 5, 6, 7, 8, 9, 11, rows=[0, 0, 0, 0, 1, 1, 1, 1, 1])
    costs = NTILLoss().bind(DIGITS)(logits, torch.tensor(targets), positions)
    torch.testing.assert_close(costs, ntil_looped(logits, targets, [[0, 1, 2], [3], [4, 5, 6, 7], [8]]))


def test_ntil_reads_the_number_off_the_best_tokens():
    sure = 50 * torch.eye(10)[[4, 0, 5]]
    costs = NTILLoss().bind(DIGITS)(sure, torch.tensor([3, 0, 5]), at(0, 1, 2))
    whole = 0.2 * 100 / 406 + 0.2 * math.log(406 / 306)
    assert costs.tolist() == pytest.approx([1.44 + whole, whole, whole], rel=1e-5)


def test_ntil_gradient_is_that_of_the_low_temperature_softmax():
    """d|X - Y| / dz goes through softmax(z / temperature), at X read off by argmax."""
    loss = NTILLoss(place_growth=0, relative=1, magnitude=0).bind(DIGITS)
    emd = NTILLoss(place_growth=0, relative=0, magnitude=0).bind(DIGITS)
    z = random_logits(2, 10).requires_grad_()
    target, positions = torch.tensor([0, 0]), at(0, 1)
    (gradient,) = torch.autograd.grad((loss(z, target, positions) - emd(z, target, positions)).sum(), z)
    x = z.argmax(1)[0] * 10.0 + z.argmax(1)[1]  # the target is 0, so the term is x / (x + 1), twice
    soft = (z / 0.1).softmax(1) @ torch.arange(10, dtype=torch.float64)
    (expected,) = torch.autograd.grad(2 / (x + 1) ** 2 * (10 * soft[0] + soft[1]), z)
    torch.testing.assert_close(gradient, expected)


def test_ntil_errors_in_higher_places_cost_more():
    loss = NTILLoss().bind(DIGITS)
    costs = [
        loss(50 * torch.eye(10)[digits], torch.tensor([3, 0, 5]), at(0, 1, 2)).sum().item()
        for digits in ([3, 0, 5], [3, 0, 6], [3, 1, 5], [4, 0, 5])
    ]
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(0, abs=1e-5)


def test_ntil_knows_tokens_of_several_digits_and_a_space_that_starts_a_number():
    vocabulary = NumericVocabulary([0, 1, 2, 3], [5, 12, 12, 345], ["5", "12", " 12", "345"])
    loss = NTILLoss(place_growth=1, relative=0, magnitude=1).bind(vocabulary)
    sure = 1000 * torch.eye(4)
    # "12" "345" is 12345, read as 12005; " 12" next to it is a number of its own.
    target = torch.tensor([1, 3, 2])
    read = sure[[1, 0, 2]]
    costs = loss(read, target, at(0, 1, 2))
    whole = math.log(12346 / 12006)
    assert costs.tolist() == pytest.approx([whole, 340 + whole, 0], rel=1e-5)
    joined = loss(read, torch.tensor([1, 3, 1]), at(0, 1, 2))
    assert joined.tolist()[1] == pytest.approx(340 * 4 + math.log(1234513 / 1200513), rel=1e-4)


def test_ntil_survives_a_hundred_digits():
    logits = random_logits(100, 10).float().requires_grad_()
    costs = NTILLoss().bind(DIGITS)(logits, torch.zeros(100, dtype=torch.int64) + 9, at(*range(100)))
    costs.sum().backward()
    assert torch.isfinite(costs).all()
    assert torch.isfinite(logits.grad).all()


def test_losses_on_whole_numbers_need_positions():
    for loss in (NTILLoss(), PlaceWeightedLoss(SMMDLoss()), DigitEntropyLoss(), NTLNumberLoss()):
        with pytest.raises(ValueError, match="looks at whole numbers, so it needs positions"):
            loss.bind(DIGITS)(torch.zeros(1, 10), torch.tensor([0]))


# Soft targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole_head", [True, False])
def test_dist2_equals_the_formula_written_as_loops(whole_head):
    vocabulary = NumericVocabulary(range(5), [0, 1, 4, 4, 9])
    loss = Dist2Loss(temperature=2.5, whole_head=whole_head).bind(vocabulary)
    head = random_logits(1, 5, 8)  # three tokens are no numbers
    got = loss.from_logits(head, torch.tensor([[0, 1, 2, 3, 4]]), shift=False)
    total = 0.0
    for k in range(5):
        weights = [math.exp(-((v - vocabulary.values[k].item()) ** 2) / 2.5) for v in vocabulary.values.tolist()]
        p = head[0, k].softmax(0) if whole_head else head[0, k, :5].softmax(0)
        for j in range(5):
            t = weights[j] / sum(weights)
            total += t * math.log(t / p[j].item())
    assert got.item() == pytest.approx(total / 5, rel=1e-6)


def test_full_gaussian_smoothing_is_dist2_over_the_numeric_tokens():
    logits, target = random_logits(10, 10), torch.arange(10)
    smoothed = GaussianSmoothingLoss(bandwidth=1.5).bind(DIGITS)(logits, target)
    dist2 = Dist2Loss(temperature=2 * 1.5**2, whole_head=False).bind(DIGITS)(logits, target)
    torch.testing.assert_close(smoothed, dist2, rtol=1e-6, atol=1e-8)


def test_no_smoothing_is_cross_entropy_over_the_numeric_tokens():
    logits, target = random_logits(10, 10), torch.arange(10)
    loss = GaussianSmoothingLoss(smoothing=0).bind(DIGITS)
    torch.testing.assert_close(loss(logits, target), F.cross_entropy(logits, target, reduction="none"))


def test_partial_smoothing_keeps_its_share_on_the_target():
    soft = GaussianSmoothingLoss(bandwidth=1.0, smoothing=0.3).bind(DIGITS).soft_target_NN
    torch.testing.assert_close(soft.sum(1), torch.ones(10))
    full = GaussianSmoothingLoss(bandwidth=1.0).bind(DIGITS).soft_target_NN
    torch.testing.assert_close(soft, 0.7 * torch.eye(10) + 0.3 * full)


# Place-value weights ------------------------------------------------------------------------------


def test_place_weights_grow_to_the_left_and_have_mean_one_within_a_number():
    inner = NTLWASLoss()
    loss = PlaceWeightedLoss(inner, base=2.0).bind(DIGITS)
    logits, target = random_logits(5, 10), torch.tensor([3, 0, 5, 8, 1])
    positions = at(0, 1, 2, 4, 9)
    weights = loss(logits, target, positions) / inner(logits, target)
    expected = [12 / 7, 6 / 7, 3 / 7, 1, 1]
    assert weights.tolist() == pytest.approx(expected, rel=1e-6)


def test_the_same_error_costs_more_in_the_tens_than_in_the_ones():
    loss = PlaceWeightedLoss(SMMDLoss(), base=3.0).bind(DIGITS)
    tens, ones = (
        loss(50 * torch.eye(10)[digits], torch.tensor([4, 4]), at(0, 1)).mean().item() for digits in ([5, 4], [4, 5])
    )
    assert tens == pytest.approx(3 * ones, rel=1e-5)


def test_place_weights_survive_a_hundred_digits():
    loss = PlaceWeightedLoss(NTLWASLoss(), base=10.0).bind(DIGITS)
    costs = loss(random_logits(100, 10).float(), torch.zeros(100, dtype=torch.int64), at(*range(100)))
    assert torch.isfinite(costs).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NTLWASLoss(squash=0.3), "squash, .*, must be a finite number from 1 to 1e.06, got 0.3"),
        (lambda: NTLRegressionLoss("rmse"), "error must be one of mse, mae, huber, got 'rmse'"),
        (lambda: RAFTLoss("last_place"), "unit must be one of value, relative, got 'last_place'"),
        (lambda: NTILLoss(relative=-1), "relative must be a finite number from 0 .* got -1"),
        (lambda: NTILLoss(temperature=0), "temperature must be a finite number from 1e-06"),
        (lambda: NTILLoss(place_growth=float("nan")), "place_growth must be a finite number .* got nan"),
        (lambda: Dist2Loss(temperature=0), "temperature must be .* got 0"),
        (lambda: GaussianSmoothingLoss(bandwidth=0), "bandwidth must be .* got 0"),
        (lambda: GaussianSmoothingLoss(smoothing=1.1), "smoothing must be a finite number from 0 to 1, got 1.1"),
        (lambda: PlaceWeightedLoss(SMMDLoss(), base=0), "base must be .* got 0"),
    ],
)
def test_impossible_settings_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
