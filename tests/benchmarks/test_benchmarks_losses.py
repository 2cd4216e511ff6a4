"""Head and loss, and the numeric loss alone: each variant once at toy size, equal to its peer."""

import argparse

import pytest
import torch

from benchmarks import head_and_loss, numeric_loss
from benchmarks.published_smmd import full_logits_loss
from smmd_lightning import NumericVocabulary, SMMDLoss

TOY = argparse.Namespace(toy=True, curves=False)


def measured(variants, case):
    """What the harness would hand to `check` and `render`, from this very process."""
    found = {"case": case}
    for name, variant in variants.items():
        one = variant(case)
        wall = one["seconds"]
        found[name] = {"peak": 1 << 30, **one, "median": wall, "least": wall, "most": wall}
    return found


@pytest.mark.parametrize("case", [*head_and_loss.cases(TOY), {**head_and_loss.TOY, "supervised": 7, "numeric": False}])
def test_loss_and_gradients_equal_full_logits(case):
    found = measured({"ours": head_and_loss.ours, "full_logits": head_and_loss.full_logits}, case)
    assert head_and_loss.difference(found["ours"], found["full_logits"]) < 1e-5
    head_and_loss.check(found)
    assert "1031 x 16" in head_and_loss.render([found])
    found["ours"]["weight_norm"] *= 1.001
    with pytest.raises(RuntimeError, match=r"loss or gradients differ from full logits by 0.001"):
        head_and_loss.check(found)


def test_in_bfloat16_too():
    case = {**head_and_loss.TOY, "supervised": 7, "dtype": "bfloat16"}
    head_and_loss.check(measured({"ours": head_and_loss.ours, "full_logits": head_and_loss.full_logits}, case))


def test_the_gradient_is_the_same_entry_by_entry():
    case = {**head_and_loss.TOY, "supervised": 7}
    hidden_BTD, weight_VD, labels_BT, vocabulary = head_and_loss.material(case)
    weight_VD.requires_grad_()
    loss = full_logits_loss(hidden_BTD @ weight_VD.T, labels_BT, vocabulary.token_ids, vocabulary.values.float(), 0.3)
    expected = torch.autograd.grad(loss, [hidden_BTD, weight_VD])
    backbone = head_and_loss.HeadAlone(weight_VD.detach(), head_chunk=5)
    objective = head_and_loss.NumericObjective(SMMDLoss(), 0.3)
    objective.bind(vocabulary, case["vocabulary"])
    output = objective(backbone, {"hidden_BTD": hidden_BTD}, labels_BT)
    torch.testing.assert_close(output.loss, loss, rtol=1e-5, atol=0)
    for ours, theirs in zip(torch.autograd.grad(output.loss, [hidden_BTD, backbone.weight]), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5 * theirs.abs().max().item())


def test_the_written_out_peer_is_the_published_loss():
    vocabulary = NumericVocabulary(token_ids=range(4, 14), values=range(10))
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(2, 9, 20, generator=generator), torch.randint(0, 20, (2, 9), generator=generator)
    ce = full_logits_loss(logits, labels, vocabulary.token_ids, vocabulary.values.float(), 0.0)
    both = full_logits_loss(logits, labels, vocabulary.token_ids, vocabulary.values.float(), 1.0)
    torch.testing.assert_close(both - ce, SMMDLoss().bind(vocabulary).from_logits(logits, labels))


@pytest.mark.parametrize("case", numeric_loss.cases(TOY))
def test_the_numeric_loss_beside_the_package_and_the_head(case):
    pytest.importorskip("ntloss")
    found = measured({"alternating": numeric_loss.alternating}, case)
    numeric_loss.check(found)
    assert f"| {case['numbers']} |" in numeric_loss.render([found])
