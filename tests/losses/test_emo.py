"""EMO against its formula in float64, alone and through a model."""

import pytest
import torch

from smmd_lightning import NumericVocabulary
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.callbacks.checks import check_strategy
from smmd_lightning.losses import EMOLoss, PlaceWeightedLoss
from smmd_lightning.objective import NumericObjective
from smmd_lightning.strategies import FSDP2Strategy

V, D = 17, 5
DIGITS = NumericVocabulary(token_ids=range(3, 13), values=range(10))


def looped(logits, labels, head):
    """sum_v p(v) (1 - cos(e_v, e_y)), a mean over numeric targets, one token after the other."""
    costs = []
    for row, targets in zip(logits, labels, strict=True):
        for scores, target in zip(row, targets.tolist(), strict=True):
            if 3 <= target < 13:
                law = scores.softmax(0)
                cosines = [torch.dot(e, head[target]) / (e.norm() * head[target].norm()) for e in head]
                costs.append(sum(p * (1 - cosine) for p, cosine in zip(law, cosines, strict=True)))
    return torch.stack(costs).mean()


def bound(head):
    loss = EMOLoss().bind(DIGITS)
    loss.bind_head(head)
    return loss


def drawn():
    generator = torch.Generator().manual_seed(0)
    head = torch.randn(V, D, generator=generator, dtype=torch.float64)
    logits = 2 * torch.randn(2, 4, V, generator=generator, dtype=torch.float64)
    return head, logits, torch.tensor([[-100, 3, 1, 12], [7, 7, -100, 16]])


@pytest.mark.parametrize("shift", [False, True])
def test_equal_to_the_formula(shift):
    head, logits, labels = drawn()
    found, expected = (logits.clone().requires_grad_() for _ in range(2))
    value = bound(head).from_logits(found, labels, shift=shift)
    wanted = looped(expected[:, :-1], labels[:, 1:], head) if shift else looped(expected, labels, head)
    torch.testing.assert_close(value, wanted, rtol=1e-6, atol=1e-6)  # the costs are kept in float32
    value.backward()
    wanted.backward()
    torch.testing.assert_close(found.grad, expected.grad, rtol=1e-6, atol=1e-6)


def test_sure_of_the_truth_costs_nothing_and_of_its_opposite_two():
    head, _, _ = drawn()
    head[16] = -3 * head[8]
    cost = bound(head).over_head(50 * torch.eye(V)[[8, 16]], torch.tensor([5, 5]))
    torch.testing.assert_close(cost, torch.tensor([0.0, 2.0]))


def test_the_objective_costs_numeric_tokens_by_the_models_own_head():
    torch.manual_seed(0)
    backbone = LanguageBackbone("tiny:llama", head_chunk=3)
    backbone.load()
    objective = NumericObjective(EMOLoss(), 0.7)
    objective.bind(DIGITS, backbone.head_rows, backbone.head_weight)
    ids = torch.tensor([[20, 4, 5, 30, 12], [3, 40, 41, 9, 50]])
    output = objective(backbone, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, ids)
    logits = backbone.head(backbone.encode({"input_ids": ids})).double()
    expected = looped(logits[:, :-1], ids[:, 1:], backbone.head_weight.double())
    torch.testing.assert_close(output.metrics["numeric"].double(), expected.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output.loss, output.metrics["ce"] + 0.7 * output.metrics["numeric"])
    output.loss.backward()
    assert all(torch.isfinite(each.grad).all() for each in backbone.parameters())


def test_training_moves_the_head_and_not_the_costs():
    head = torch.nn.Parameter(torch.randn(V, D))
    loss = bound(head)
    before = loss.cost_NV.clone()
    with torch.no_grad():
        head.zero_()
    assert not loss.cost_NV.requires_grad
    torch.testing.assert_close(loss.cost_NV, before, rtol=0, atol=0)


def test_what_is_missing_is_said():
    loss = EMOLoss().bind(DIGITS)
    with pytest.raises(RuntimeError, match=r"call bind_head\(model.lm_head.weight\) after bind"):
        loss.over_head(torch.zeros(1, V), torch.tensor([1]))
    with pytest.raises(ValueError, match="needs the whole head in one process"):
        loss.bind_head(torch.zeros(V, D, device="meta"))
    with pytest.raises(ValueError, match="EMOLoss needs the head's weights"):
        NumericObjective(EMOLoss()).bind(DIGITS, V)
    with pytest.raises(RuntimeError, match="EMOLoss is over the whole head"):
        loss(torch.zeros(1, 10), torch.tensor([1]))
    with pytest.raises(ValueError, match="EMOLoss costs tokens over the whole head"):
        PlaceWeightedLoss(EMOLoss())


def test_sharded_strategies_are_refused_before_anything_loads():
    class Trainer:
        strategy = FSDP2Strategy()

    with pytest.raises(ValueError, match="EMOLoss needs the whole head in one process, and FSDP2Strategy spreads it"):
        check_strategy(Trainer(), LanguageBackbone("tiny:llama"), EMOLoss())
