"""Shape legend: S positions, V rows of the head, K numeric positions, N numeric tokens."""

import pytest
import torch
from torch.nn import functional as F

from smmd_lightning.losses import cross_entropy
from smmd_lightning.losses.cross_entropy import supervised_scores

IDS_N = torch.tensor([3, 9, 5])


def drawn(positions=7, head=13, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    logits_SV = torch.randn(positions, head, generator=generator, dtype=torch.float64).to(dtype)
    targets_S = torch.randint(0, head, (positions,), generator=generator)
    return (4 * logits_SV).requires_grad_(), targets_S, torch.arange(0, positions, 2)


def written_out(logits_SV, targets_S, rows_K, ids_N):
    wide_SV = logits_SV.to(torch.promote_types(logits_SV.dtype, torch.float32))
    numeric_KN = wide_SV.index_select(0, rows_K).index_select(1, ids_N)
    return F.cross_entropy(wide_SV, targets_S, reduction="none"), numeric_KN, wide_SV[rows_K].logsumexp(1)


def weighed(outputs):
    """One number that depends on every entry of every output, each with a weight of its own."""
    return sum((output * torch.arange(1, output.numel() + 1).view_as(output)).sum() for output in outputs)


@pytest.mark.parametrize("elements", [1, 40, 1 << 21])
def test_values_and_gradients_equal_the_expression_written_out(monkeypatch, elements):
    monkeypatch.setitem(cross_entropy.BLOCK_ELEMENTS, "cpu", elements)
    logits_SV, *rest = drawn()
    for ours, theirs in zip(
        supervised_scores(logits_SV, *rest, IDS_N), written_out(logits_SV, *rest, IDS_N), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    (ours,) = torch.autograd.grad(weighed(supervised_scores(logits_SV, *rest, IDS_N)), logits_SV)
    (theirs,) = torch.autograd.grad(weighed(written_out(logits_SV, *rest, IDS_N)), logits_SV)
    torch.testing.assert_close(ours, theirs)


def test_half_precision_logits_are_read_in_float32():
    logits_SV, *rest = drawn(dtype=torch.bfloat16)
    ours, theirs = supervised_scores(logits_SV, *rest, IDS_N), written_out(logits_SV, *rest, IDS_N)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, other)
    (mine,) = torch.autograd.grad(ours[0].sum(), logits_SV)
    (other,) = torch.autograd.grad(theirs[0].sum(), logits_SV)
    assert mine.dtype == torch.bfloat16
    torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("positions", [0, 3])
def test_no_position_or_no_number_stays_joined_to_the_graph(positions):
    logits_SV, targets_S, _ = drawn(positions)
    none = torch.empty(0, dtype=torch.long)
    outputs = supervised_scores(logits_SV, targets_S, none, none)
    assert [tuple(output.shape) for output in outputs] == [(positions,), (0, 0), (0,)]
    (gradient,) = torch.autograd.grad(sum(output.sum() for output in outputs), logits_SV)
    assert gradient.shape == logits_SV.shape


def test_the_backward_pass_may_run_twice():
    logits_SV, *rest = drawn()
    total = weighed(supervised_scores(logits_SV, *rest, IDS_N))
    (first,) = torch.autograd.grad(total, logits_SV, retain_graph=True)
    (second,) = torch.autograd.grad(total, logits_SV)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
