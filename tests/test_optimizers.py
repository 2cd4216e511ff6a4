import copy

import pytest
import torch
from torch import nn

from smmd_lightning import optimizers
from smmd_lightning.optimizers import MuonAdamW, orthogonalised


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed_tokens = nn.Embedding(7, 8)
        self.block = nn.Linear(8, 8)
        self.lm_head = nn.Linear(8, 7, bias=False)

    def loss(self):
        ids = torch.arange(7)
        return nn.functional.cross_entropy(self.lm_head(torch.tanh(self.block(self.embed_tokens(ids)))), ids.roll(1))


def steps(model, optimizer, count, schedule=None):
    for _ in range(count):
        optimizer.zero_grad()
        loss = model.loss()
        loss.backward()
        optimizer.step()
        if schedule:
            schedule.step()
    return loss.item()


def test_equals_both_optimizers_side_by_side():
    ours, theirs = Toy(), Toy()
    optimizer = MuonAdamW(list(ours.named_parameters()), lr=0.01, muon_lr=0.02, weight_decay=0.1)
    muon = torch.optim.Muon(
        [theirs.block.weight], lr=0.02, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    rest = [theirs.embed_tokens.weight, theirs.block.bias, theirs.lm_head.weight]
    adamw = torch.optim.AdamW(rest, lr=0.01, betas=(0.9, 0.98), weight_decay=0.1)
    for _ in range(5):
        for value, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            value.grad = torch.randn_like(value)
            other.grad = value.grad.clone()
        for part in (optimizer, muon, adamw):
            part.step()
    for (name, value), other in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        # torch orthogonalises in bfloat16 (8 bits) on every device, this package in float32 on a CPU.
        rounding = {"rtol": 0.02, "atol": 0.01} if name == "block.weight" else {}
        torch.testing.assert_close(value, other[1], **rounding, msg=name)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 5, 12), (2, 12, 5)])
def test_orthogonalised_keeps_singular_vectors_and_levels_singular_values(shape):
    matrices = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    levelled = orthogonalised(matrices, (3.4445, -4.775, 2.0315), 8)
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    middle = left.mT @ levelled @ right.mT
    values = middle.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(middle, torch.diag_embed(values))
    assert ((values > 0.6) & (values < 1.3)).all()
    for matrix, alone in zip(matrices, levelled, strict=True):
        torch.testing.assert_close(orthogonalised(matrix[None], (3.4445, -4.775, 2.0315), 8)[0], alone)


@pytest.mark.parametrize("shape", [(128, 128), (128, 344), (512, 128)])
def test_orthogonalised_in_float32_is_that_in_float64_also_where_singular_values_are_far_apart(shape):
    generator = torch.Generator().manual_seed(2)
    left, _, right = torch.linalg.svd(
        torch.randn(*shape, dtype=torch.float64, generator=generator), full_matrices=False
    )
    matrix = (left * torch.logspace(0, -6, min(shape), dtype=torch.float64)) @ right
    exact = orthogonalised(matrix[None], (3.4445, -4.775, 2.0315), 5)
    found = orthogonalised(matrix[None].float(), (3.4445, -4.775, 2.0315), 5)
    assert (found - exact).norm() < 1e-3 * exact.norm()


def test_float32_steps_are_torchs_steps_up_to_their_rounding():
    """Over many steps and both orientations, the distance walked agrees to bfloat16's precision."""
    torch.manual_seed(0)
    ours = nn.ModuleList([nn.Linear(16, 24, bias=False), nn.Linear(24, 16, bias=False), nn.Linear(16, 24, bias=False)])
    theirs = copy.deepcopy(ours)
    inputs, target = torch.randn(32, 16), torch.randn(32, 24)

    def loss(model):
        return (model[2](model[1](model[0](inputs))) - target).square().mean()

    optimizer = MuonAdamW(list(ours.named_parameters()), muon_lr=0.02, weight_decay=0.1)
    muon = torch.optim.Muon(
        theirs.parameters(), lr=0.02, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    start = [value.detach().clone() for value in ours.parameters()]
    for _ in range(10):
        for model, part in ((ours, optimizer), (theirs, muon)):
            model.zero_grad()
            loss(model).backward()
            part.step()
    for before, value, other in zip(start, ours.parameters(), theirs.parameters(), strict=True):
        assert (value - other).norm() < 0.02 * (other - before).norm()


def test_a_schedule_moves_both_rates():
    model = Toy()
    optimizer = MuonAdamW(list(model.named_parameters()), lr=0.01, muon_lr=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    before = model.block.weight.detach().clone()
    steps(model, optimizer, 2, schedule)
    assert [group["lr"] for group in optimizer.param_groups] == [0.005, 0.0025]
    assert [part.param_groups[0]["lr"] for part in optimizer.parts] == [0.005, 0.0025]
    assert not torch.equal(before, model.block.weight)


def test_goes_on_from_its_state_exactly():
    model = Toy()
    optimizer = MuonAdamW(list(model.named_parameters()))
    steps(model, optimizer, 3)
    other = copy.deepcopy(model)
    resumed = MuonAdamW(list(other.named_parameters()))
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(model, optimizer, 3)
    steps(other, resumed, 3)
    for value, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(value, expected)


def test_needs_names():
    with pytest.raises(ValueError, match="needs named parameters"):
        MuonAdamW(list(Toy().parameters()))


class Seeing(Toy):
    """A toy with convolutions, a table of relative positions, and names that sound like an embedding."""

    def __init__(self):
        super().__init__()
        self.patch_embedding = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.Conv2d(4, 8, 3, 2))
        self.attention_biases = nn.Parameter(torch.randn(2, 7))


def test_kernels_go_to_muon_as_matrices_if_asked():
    ours = Seeing()
    kernels = [layer.weight for layer in ours.patch_embedding]
    theirs = [nn.Parameter(kernel.detach().flatten(1).clone()) for kernel in kernels]
    optimizer = MuonAdamW(list(ours.named_parameters()), muon_lr=0.02, weight_decay=0.1, convolutions=True)
    muon = MuonAdamW([("a", theirs[0]), ("b", theirs[1])], muon_lr=0.02, weight_decay=0.1)
    for _ in range(3):
        for value in ours.parameters():
            value.grad = torch.randn_like(value)
        for kernel, matrix in zip(kernels, theirs, strict=True):
            matrix.grad = kernel.grad.flatten(1).clone()
        optimizer.step()
        muon.step()
    for kernel, matrix in zip(kernels, theirs, strict=True):
        torch.testing.assert_close(kernel.flatten(1), matrix)


def test_where_torch_steps_on_matrices_kernels_are_still_stepped_on_here(monkeypatch):
    """As on a GPU: torch's own bfloat16 step for matrices, ours for kernels, which torch refuses."""
    here, there = Seeing(), Seeing()
    matrix = nn.Parameter(there.block.weight.detach().clone())
    for value in here.parameters():
        value.grad = torch.randn_like(value)
    for value, other in zip(here.parameters(), there.parameters(), strict=True):
        other.grad = value.grad.clone()
    matrix.grad = there.block.weight.grad.clone()
    settings = {"lr": 0.02, "momentum": 0.95, "weight_decay": 0.1, "adjust_lr_fn": "match_rms_adamw"}
    MuonAdamW(list(there.named_parameters()), muon_lr=0.02, weight_decay=0.1, convolutions=True).step()
    torch.optim.Muon([matrix], **settings).step()
    monkeypatch.setattr(optimizers, "_is_ours", lambda group: group["params"][0].ndim > 2)
    optimizer = MuonAdamW(list(here.named_parameters()), muon_lr=0.02, weight_decay=0.1, convolutions=True)
    optimizer.step()
    assert [len(group["params"]) for group in optimizer.parts[0].param_groups] == [1, 2]
    assert torch.equal(here.block.weight, matrix)
    for layer, other in zip(here.patch_embedding, there.patch_embedding, strict=True):
        assert torch.equal(layer.weight, other.weight)


@pytest.mark.parametrize("convolutions", [True, False])
def test_every_parameter_has_one_optimizer(convolutions):
    model = Seeing()
    optimizer = MuonAdamW(list(model.named_parameters()), lr=0.5, muon_lr=0.25, convolutions=convolutions)
    rates = {id(value): group["lr"] for group in optimizer.param_groups for value in group["params"]}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(model.parameters()))
    muons = {name for name, value in model.named_parameters() if rates[id(value)] == 0.25}
    kernels = {"patch_embedding.0.weight", "patch_embedding.1.weight"} if convolutions else set()
    assert muons == {"block.weight"} | kernels


def test_kernels_without_any_matrix_stay_with_adamw():
    layer = nn.Conv2d(3, 4, 3)
    optimizer = MuonAdamW(list(layer.named_parameters()), convolutions=True)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2]


def test_with_kernels_it_goes_on_from_its_state_exactly():
    def walk(model, optimizer, first, last):
        for step in range(first, last):
            torch.manual_seed(step)
            for value in model.parameters():
                value.grad = torch.randn_like(value)
            optimizer.step()

    def pair():
        model = Seeing()
        return model, MuonAdamW(list(model.named_parameters()), convolutions=True)

    whole, optimizer = pair()
    walk(whole, optimizer, 0, 4)
    parts, optimizer = pair()
    walk(parts, optimizer, 0, 2)
    resumed = MuonAdamW(list(parts.named_parameters()), convolutions=True)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    walk(parts, resumed, 2, 4)
    for value, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(value, other)


@pytest.mark.parametrize("make", [torch.optim.AdamW, MuonAdamW, torch.optim.SGD])
def test_scaled_learning_rates_are_those_of_an_optimizer_with_groups_of_its_own(make):
    """A part at ten times the rate steps as it does in an optimizer at ten times the rate, through a schedule."""
    scales = {"block.*": 10.0, "*.weight": 0.5}
    ours, whole, fast, slow = Toy(), Toy(), Toy(), Toy()
    optimizer = make(list(ours.named_parameters()), lr=0.01)
    optimizers.scale_learning_rates(optimizer, scales)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    rates = {name: group["lr"] for group in optimizer.param_groups for name in group["param_names"]}
    plain = make(list(whole.named_parameters()), lr=0.01)
    base = {name: group["lr"] for group in plain.param_groups for name in group["param_names"]}
    expected = {name: rate * (10.0 if name.startswith("block") else 0.5) for name, rate in base.items()}
    assert rates == pytest.approx(expected)
    assert sorted(rates) == sorted(name for name, _ in ours.named_parameters())
    steps(ours, optimizer, 1, schedule)
    for factor, model, part in ((10.0, fast, "block"), (0.5, slow, "lm_head")):
        other = make(list(model.named_parameters()), lr=0.01)
        for group in other.param_groups:
            group["lr"] *= factor
        steps(model, other, 1)
        for name, parameter in getattr(model, part).named_parameters():
            torch.testing.assert_close(ours.get_parameter(f"{part}.{name}"), parameter)
    again = make(list(Toy().named_parameters()), lr=0.01)
    optimizers.scale_learning_rates(again, scales)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert [group["lr"] for group in again.param_groups] == [group["lr"] for group in optimizer.param_groups]


def test_scales_that_fit_nothing_or_stop_a_part_are_refused():
    optimizer = torch.optim.AdamW(list(Toy().named_parameters()), lr=0.01)
    with pytest.raises(ValueError, match=r"\['projector.\*'\] fit no trained parameter"):
        optimizers.scale_learning_rates(optimizer, {"projector.*": 2.0})
    with pytest.raises(ValueError, match=r"the factor of 'block.\*' must be above 0, got 0"):
        optimizers.scale_learning_rates(optimizer, {"block.*": 0})
