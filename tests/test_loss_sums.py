import pytest
import torch

from smmd_lightning.loss_sums import LossSums, StepCounts, Window
from smmd_lightning.types import LossOutput


def output(ce, numeric_loss, supervised, numeric):
    sums = {"ce_sum": torch.tensor(ce), "numeric_sum": torch.tensor(numeric_loss)}
    return LossOutput(loss=torch.tensor(0.0), metrics=sums, supervised=supervised, numeric=numeric)


class TwoEqualProcesses:
    def reduce(self, tensor, reduce_op):
        assert reduce_op == "sum"
        return 2 * tensor


def test_means_weigh_every_position_the_same_over_micro_batches_of_unequal_size():
    sums = LossSums()
    sums.add(output(6.0, 1.0, 3, 1))
    sums.add(output(1.0, 5.0, 4, 2))
    means = sums.means(loss_weight=0.5)
    assert [float(means[name]) for name in ("ce", "numeric", "loss")] == [1.0, 2.0, 2.0]


def test_nothing_summed_is_zero_not_a_division_by_zero():
    assert LossSums().means(0.3) == {"loss": 0.0, "ce": 0.0, "numeric": 0.0}


def test_a_thousand_float32_sums_add_up_in_float64():
    sums = LossSums()
    for _ in range(1000):
        sums.add(output(0.1, 0.0, 1, 0))
    assert float(sums.means(0.0)["ce"]) == pytest.approx(float(torch.tensor(0.1)), rel=1e-12)


def test_reduced_sums_are_those_of_all_processes_and_leave_the_own_alone():
    sums = LossSums(torch.tensor(6.0), torch.tensor(1.0), 3, 2)
    total = sums.reduce(TwoEqualProcesses(), torch.device("cpu"))
    assert (total.ce, total.numeric_loss, total.supervised, total.numeric) == (12.0, 2.0, 6, 4)
    assert (float(sums.ce), sums.supervised) == (6.0, 3)


def test_a_window_forgets_when_it_opens():
    window = Window()
    window.add(output(6.0, 1.0, 3, 1))
    assert (window.micro_batches, window.sums.supervised) == (1, 3)
    counts = StepCounts(3, 1)
    window.open(counts)
    assert (window.counts, window.micro_batches, window.sums.supervised) == (counts, 0, 0)
