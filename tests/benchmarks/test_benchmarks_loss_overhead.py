"""What a loss adds to a step, at toy size."""

import torch

from benchmarks import loss_overhead
from benchmarks.loss_overhead import CE, LOSSES, STEP


def test_every_loss_is_measured(tmp_path):
    text = loss_overhead.main(["--toy", "--out", str(tmp_path)]).read_text()
    for name in LOSSES:
        assert f"| CE + {name} | " in text
    assert "`python -m benchmarks.loss_overhead --toy`" in text


def test_the_losses_see_as_many_numbers_as_it_says_and_change_the_gradient(monkeypatch):
    seen = []
    forward = loss_overhead.SMMDLoss.forward

    def seeing(self, logits, *rest):
        seen.append(logits.shape)
        return forward(self, logits, *rest)

    monkeypatch.setattr(loss_overhead.SMMDLoss, "forward", seeing)
    made = loss_overhead.passes(numbers=20, positions=3, rows=2, length=16)
    alone, both = made[CE]().clone(), made["SMMD"]().clone()
    assert seen == [torch.Size([6, 20])]
    assert len(alone) == 12
    changed = (alone != both).any(1)
    assert changed.sum() == 6


def test_what_is_added_is_a_share_of_the_step():
    calls = []

    def busy(count):
        return lambda: calls.append(count) or sum(range(count))

    found = loss_overhead.measure({STEP: busy(3_000_000), CE: busy(10), "half": busy(1_500_000)}, rounds=5)
    assert calls.count(3_000_000) == 7  # two to warm up
    assert 0.3 < found["half"]["cpu"] < 0.8
    assert found[CE]["cpu"] == 0


def test_the_share_at_scale_is_that_of_32_blocks():
    found = loss_overhead.share_at_scale(tokens=2, numbers=20, width=8, inner=16)
    assert found["share"] == found["loss"] / (32 * found["block"])
