"""What a loss adds to a step, at toy size."""

import torch

from benchmarks import loss_overhead


def test_every_loss_is_measured_and_its_numbers_are_seen(tmp_path):
    file = loss_overhead.main(["--toy", "--out", str(tmp_path)])
    text = file.read_text()
    for name in (loss_overhead.CE, *loss_overhead.LOSSES):
        assert f"| {name} | " in text
    assert "`python -m benchmarks.loss_overhead --toy`" in text


def test_the_step_has_as_many_numbers_as_it_says(monkeypatch):
    seen = []
    forward = loss_overhead.SMMDLoss.forward

    def seeing(self, logits, *rest):
        seen.append(logits.shape)
        return forward(self, logits, *rest)

    monkeypatch.setattr(loss_overhead.SMMDLoss, "forward", seeing)
    loss_overhead.steps(numbers=20, positions=3, rows=2, length=16)["SMMD"]()
    assert seen == [torch.Size([6, 20])]


def test_ratios_are_taken_round_by_round():
    clocked = []
    found = loss_overhead.measure({"CE": lambda: clocked.append("CE"), "slow": lambda: sum(range(200_000))}, rounds=5)
    assert len(clocked) == 7  # two to warm up
    assert found["CE"]["wall"] == 1
    assert found["slow"]["wall"] > 10
