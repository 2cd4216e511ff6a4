import copy

import pytest
import torch
from torch import nn

from smmd_lightning.optimizers import MuonAdamW


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
        for model, parts in ((ours, [optimizer]), (theirs, [muon, adamw])):
            model.zero_grad()
            model.loss().backward()
            for part in parts:
                part.step()
    for (name, value), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(value, other, msg=name)


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
