"""SMMD against the published code's numbers, the formulas written as loops, and what it is for."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from smmd_lightning.losses import SMMDLoss
from smmd_lightning.vocabulary import NumericVocabulary

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "smmd_reference_values.json").read_text())["cases"]


def integers(largest: int, first_id: int = 0) -> NumericVocabulary:
    return NumericVocabulary(range(first_id, first_id + largest + 1), range(largest + 1))


def settings_of(options: dict) -> dict:
    """Our names for the published code's options."""
    names = {"loss_mode": "term", "kernel_type": "kernel", "sigmas": "bandwidths", "squash_factor": "squash"}
    settings = {names[name]: value for name, value in options.items() if name in names}
    if options.get("tau_mode") == "fixed":
        settings["smoothness"] = options["tau_fixed"]
    return settings


def golden_logits(case: dict) -> torch.Tensor:
    rows, length = case["shape"]
    b = torch.arange(rows, dtype=torch.float64)[:, None, None]
    t = torch.arange(length, dtype=torch.float64)[None, :, None]
    v = torch.arange(case["vocab"], dtype=torch.float64)
    return (3 * torch.sin(0.37 * b + 1.3 * t + 0.011 * v * (t + 1) + 0.5)).float()


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['name']}-{case['options']}")
def test_published_losses_and_gradients(case):
    largest = case["max_single_token_integer"]
    loss = SMMDLoss(**settings_of(case["options"])).bind(integers(largest, case["first_number_id"]))
    logits = golden_logits(case).requires_grad_()
    value = loss.from_logits(logits, torch.tensor(case["targets"]), shift=False)
    value.backward()
    gradient = logits.grad.flatten()
    # Softmax and product each sum N terms: rounding grows with the root of N, in units of float32's precision.
    rounding = torch.finfo(torch.float32).eps * (8 + math.sqrt(largest + 1))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(case["loss"], rel=rounding)
    assert gradient.double().norm().item() == pytest.approx(case["grad_l2"], rel=rounding)
    for place, expected in case["grad_top"]:
        assert gradient[place].item() == pytest.approx(expected, rel=rounding)


def looped(values, logits, target, term, kernel, bandwidths, squash, smoothness, distance, period):
    """The loss of one position, one number after the other, from the formulas."""
    n = len(values)

    def apart(a, b):
        if distance == "log":
            return abs(math.log(1 + a) - math.log(1 + b))
        if distance == "circular":
            return min(abs(a - b) % period, period - abs(a - b) % period)
        return abs(a - b)

    d = [[apart(a, b) for b in values] for a in values]
    positive = [x for row in d for x in row if x > 0]
    low, high = min(positive), max(positive)
    if squash:
        d = [[1 + (x - low) / (high - low) * (squash - 1) if x > 0 else 0.0 for x in row] for row in d]

    def k(x):
        shapes = [math.exp(-x * x / (2 * s * s)) if kernel == "gaussian" else math.exp(-x / s) for s in bandwidths]
        return sum(shapes) / len(shapes)

    graph = [[k(x) for x in row] for row in d]
    degrees = [sum(row) for row in graph]
    alpha = n / (2 * sum(degrees)) if smoothness == "auto" else smoothness
    total = sum(math.exp(z) for z in logits)
    r = [math.exp(z) / total - (i == target) for i, z in enumerate(logits)]
    mmd = sum(r[i] * graph[i][j] * r[j] for i in range(n) for j in range(n))
    smooth = alpha * 0.5 * sum(graph[i][j] * (r[i] - r[j]) ** 2 for i in range(n) for j in range(n))
    return {"mmd": mmd, "smooth": smooth, "smmd": mmd + smooth}[term]


@pytest.mark.parametrize("term", ["smmd", "mmd", "smooth"])
@pytest.mark.parametrize(
    ("kernel", "bandwidths", "squash", "smoothness", "distance", "period"),
    [
        ("gaussian", (2.0,), 9.0, "auto", "absolute", None),
        ("laplace", (0.5, 3.0), 4.0, 0.3, "absolute", None),
        ("gaussian", (0.4,), None, "auto", "log", None),
        ("laplace", (1.5,), 9.0, "auto", "circular", 60),
    ],
)
def test_equals_the_formulas_written_as_loops(term, kernel, bandwidths, squash, smoothness, distance, period):
    values = [0, 1, 3, 3, 7, 22, 58, 59]  # irregular, with a pair of twins
    loss = SMMDLoss(term, kernel, bandwidths, squash, smoothness, distance, period)
    loss.bind(NumericVocabulary(range(8), values))
    logits = torch.randn(8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2
    got = loss(logits, torch.arange(8))
    expected = [
        looped(values, logits[i].tolist(), i, term, kernel, bandwidths, squash, smoothness, distance, period)
        for i in range(8)
    ]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("term", ["smmd", "mmd", "smooth"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "random", "shuffled"])
def test_gradient_in_float64(term, kernel):
    loss = SMMDLoss(term, kernel).bind(integers(6))
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    target = torch.tensor([0, 6, 3])
    assert torch.autograd.gradcheck(lambda z: loss(z, target), logits.requires_grad_())


@pytest.mark.parametrize("term", ["smmd", "mmd"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("distance", ["absolute", "log"])
def test_nearer_costs_less(term, kernel, distance):
    loss = SMMDLoss(term, kernel, distance=distance, squash=None).bind(integers(9))
    sure = 30 * torch.eye(10)
    for target in range(10):
        costs = loss(sure, torch.full((10,), target))
        assert costs[target].item() == pytest.approx(0, abs=1e-9)
        for away in (costs[: target + 1].flip(0), costs[target:]):
            # The ends of the scale have fewer neighbours, so far out the smoothness term eases off.
            steps = away.diff() if term == "mmd" else away.diff()[:3]
            assert (steps > 0).all()
            assert (away[2:] > away[1:2]).all()


def test_mass_that_moves_towards_the_target_costs_less():
    loss = SMMDLoss().bind(integers(9))
    logits = torch.full((3, 10), -20.0)
    logits[torch.arange(3), [5, 7, 9]] = 0.0
    logits[:, 4] = 0.0
    near, middle, far = loss(logits, torch.tensor([4, 4, 4])).tolist()
    assert near < middle < far


@pytest.mark.parametrize("term", ["smmd", "mmd", "smooth"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "random", "shuffled"])
def test_certainty_costs_nothing_and_nothing_costs_less(term, kernel):
    loss = SMMDLoss(term, kernel).bind(integers(99))
    target = torch.arange(100)
    assert torch.equal(loss(1000 * torch.eye(100), target), torch.zeros(100))
    random = torch.randn(100, 100, generator=torch.Generator().manual_seed(3)) * 3
    assert (loss(random, target) > 0).all()


def test_59_and_0_are_neighbours_on_a_dial_only():
    sure = 30 * torch.eye(60)[[59, 1, 30]]
    target = torch.zeros(3, dtype=torch.int64)
    last, first, opposite = SMMDLoss(distance="circular", period=60).bind(integers(59))(sure, target).tolist()
    assert last == pytest.approx(first, rel=1e-5)
    assert last < opposite
    last, first, opposite = SMMDLoss("mmd").bind(integers(59))(sure, target).tolist()
    assert first < opposite < last


@pytest.mark.parametrize("distance", ["absolute", "circular"])
def test_only_differences_between_values_count(distance):
    settings = {"distance": distance, "period": 60 if distance == "circular" else None}
    logits = torch.randn(5, 60, generator=torch.Generator().manual_seed(4))
    target = torch.arange(0, 60, 12)
    here = SMMDLoss(**settings).bind(integers(59))
    there = SMMDLoss(**settings).bind(NumericVocabulary(range(60), range(100, 160)))
    torch.testing.assert_close(here(logits, target), there(logits, target), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(here(logits, target), here(logits + 5, target), rtol=1e-5, atol=1e-6)


def test_a_dial_may_be_turned():
    logits = torch.randn(5, 60, generator=torch.Generator().manual_seed(4))
    target = torch.arange(0, 60, 12)
    loss = SMMDLoss(distance="circular", period=60).bind(integers(59))
    turned = loss(logits.roll(17, 1), (target + 17) % 60)
    torch.testing.assert_close(loss(logits, target), turned, rtol=1e-5, atol=1e-6)


def test_the_gradient_survives_recomputation_and_compilation():
    from torch.utils.checkpoint import checkpoint

    loss = SMMDLoss().bind(integers(19))
    logits = torch.randn(4, 20, generator=torch.Generator().manual_seed(5)).requires_grad_()
    target = torch.arange(4)
    (expected,) = torch.autograd.grad(loss(logits, target).sum(), logits)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for costs in (checkpoint(loss, logits, target, use_reentrant=False), compiled(logits, target)):
        torch.testing.assert_close(torch.autograd.grad(costs.sum(), logits)[0], expected)


def test_squashing_digits_to_nine_changes_nothing():
    plain, squashed = SMMDLoss(squash=None).bind(integers(9)), SMMDLoss().bind(integers(9))
    torch.testing.assert_close(plain.coupling_NN, squashed.coupling_NN, rtol=1e-6, atol=1e-7)


def test_squash_puts_the_smallest_distance_at_one_and_the_largest_at_the_factor():
    values = torch.tensor([0.0, 3.0, 3.0, 100.0], dtype=torch.float64)
    kernel = SMMDLoss(bandwidths=(1.0,), kernel="laplace", squash=5.0).kernel_matrix(values)
    expected = [0, 1, 1, 5]
    assert (-kernel[0].log()).tolist() == pytest.approx(expected)
    assert kernel[1, 2] == 1


def test_two_values_are_one_apart_however_squashed():
    kernel = SMMDLoss(bandwidths=(1.0,), kernel="laplace").kernel_matrix(torch.tensor([0.0, 60.0]))
    assert kernel[0, 1].item() == pytest.approx(math.exp(-1))


def test_the_space_prefixed_twin_is_free_for_mmd_and_not_for_smoothness():
    twins = NumericVocabulary([1, 2, 3, 4, 5], [0, 3, 3, 6, 9], ["0", "3", " 3", "6", "9"])
    sure_of_twin = 100 * torch.eye(5)[[2]]
    target = torch.tensor([1])
    assert SMMDLoss("mmd").bind(twins)(sure_of_twin, target).item() == pytest.approx(0, abs=1e-6)
    loss = SMMDLoss("smooth").bind(twins)
    degrees = loss.kernel_matrix(twins.values).sum(1)
    expected = (degrees[1] + degrees[2]) / (2 * degrees.mean())
    assert loss(sure_of_twin, target).item() == pytest.approx(expected.item(), rel=1e-6)


def test_control_kernels_are_reproducible_positive_and_blind_to_distance():
    values = torch.arange(1000, dtype=torch.float64)
    rng = torch.random.get_rng_state()
    kernel = SMMDLoss(kernel="random", seed=5).kernel_matrix(values)
    assert torch.equal(torch.random.get_rng_state(), rng)
    assert torch.equal(kernel, SMMDLoss(kernel="random", seed=5).kernel_matrix(values))
    assert not torch.equal(kernel, SMMDLoss(kernel="random", seed=6).kernel_matrix(values))
    assert torch.equal(kernel, kernel.T)
    assert torch.equal(kernel.diag(), torch.ones(1000, dtype=torch.float64))
    assert torch.linalg.eigvalsh(kernel).min() > 0
    neighbours, distant = kernel.diag(1).mean(), kernel.diag(500).mean()
    assert abs(neighbours - distant) < 1e-3


def test_random_kernel_is_the_fifth_power_of_products_of_unit_sign_vectors():
    kernel = SMMDLoss(kernel="random").kernel_matrix(torch.arange(50, dtype=torch.float64))
    steps = kernel.pow(0.2) * 64 / 2  # products of 64 signs are even
    torch.testing.assert_close(steps, steps.round(), atol=1e-6, rtol=0)
    assert 0 < kernel.fill_diagonal_(0).max() < 0.3


def test_shuffled_kernel_holds_the_same_numbers_elsewhere():
    values = torch.tensor([0.0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9], dtype=torch.float64)
    kernel, shuffled = (SMMDLoss(kernel=name).kernel_matrix(values) for name in ("gaussian", "shuffled"))
    assert not torch.equal(kernel, shuffled)
    assert shuffled[5, 6] == 1  # twins stay twins
    alone = [i for i in range(11) if i != 6]
    torch.testing.assert_close(
        kernel[alone][:, alone].flatten().sort().values, shuffled[alone][:, alone].flatten().sort().values
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"term": "both"}, "term must be one of smmd, mmd, smooth, got 'both'"),
        ({"kernel": "rbf"}, "kernel must be one of"),
        ({"kernel": "energy"}, "kernel='energy' is a score by itself: set term='mmd', got term='smmd'"),
        ({"bandwidths": ()}, "bandwidths must hold at least one number"),
        ({"bandwidths": (math.nan,)}, "each of bandwidths must be a finite number .* got nan"),
        ({"bandwidths": (1e-300,)}, "each of bandwidths must be a finite number from 1e-06 .* got 1e-300"),
        ({"bandwidths": (2.0, 0.0)}, "each of bandwidths .* got 0.0"),
        ({"squash": 0.5}, "squash, .* must be a finite number from 1 .* got 0.5"),
        ({"squash": math.inf}, "squash, .* got inf"),
        ({"smoothness": "fixed"}, "smoothness, where not 'auto', must be a finite number .* got 'fixed'"),
        ({"smoothness": -1}, "smoothness, .* got -1"),
        ({"smoothness": math.nan}, "smoothness, .* got nan"),
        ({"distance": "circular"}, "period belong together"),
        ({"period": 60}, "period belong together"),
        ({"distance": "circular", "period": 0}, "period must be a finite number .* got 0"),
        ({"distance": "circular", "period": math.nan}, "period must be a finite number .* got nan"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        SMMDLoss(**settings)


@pytest.mark.parametrize("period", [1, 3, 9])
def test_a_period_that_would_make_two_values_equal_is_refused(period):
    with pytest.raises(ValueError, match=f"period={period} would make different values equal: .* 0 to 9"):
        SMMDLoss(distance="circular", period=period).bind(integers(9))


def test_values_without_a_logarithm_are_refused():
    with pytest.raises(ValueError, match=r"distance='log' .* above -1; got -1"):
        SMMDLoss(distance="log").bind(NumericVocabulary(range(3), [-1, 0, 1]))


def test_the_energy_kernel_makes_the_crps_and_the_identity_the_brier_score():
    values = [0, 1, 3, 3, 7, 22]  # irregular, with a pair of twins
    logits = torch.randn(6, 6, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    target = torch.arange(6)
    numbers = NumericVocabulary(range(6), values)
    crps = SMMDLoss("mmd", "energy", squash=None).bind(numbers)(logits, target)
    brier = SMMDLoss("mmd", "identity").bind(numbers)(logits, target)
    distinct = sorted(set(values))
    for i, p in enumerate(logits.softmax(1).tolist()):
        mass = {x: sum(q for v, q in zip(values, p, strict=True) if v == x) for x in distinct}
        expected = sum(
            (high - low) * (sum(mass[x] for x in distinct if x <= low) - (values[i] <= low)) ** 2
            for low, high in itertools.pairwise(distinct)
        )  # the integral of (F(x) - 1[x >= y])^2
        assert crps[i].item() == pytest.approx(expected, rel=1e-6)
        assert brier[i].item() == pytest.approx(sum((q - (x == values[i])) ** 2 for x, q in mass.items()), rel=1e-6)


def test_control_kernels_follow_the_runs_seed():
    values = torch.arange(10, dtype=torch.float64)
    made = []
    for seed in (1, 2, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            made.append(SMMDLoss(kernel="shuffled").kernel_matrix(values))
    assert torch.equal(made[0], made[2])
    assert not torch.equal(made[0], made[1])
