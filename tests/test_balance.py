"""Lambda by a ratio of gradients, against gradients that autograd takes of losses written over all logits."""

import math

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback
from torch.nn import functional as F

from datamodules import DrawnArithmetic, TextMathDataModule
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.balance import MeasuredWeight, WeightBalance
from smmd_lightning.losses import NTLWASLoss, WholeNumberLoss
from smmd_lightning.objective import NumericObjective

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "use_distributed_sampler": False,
    "limit_val_batches": 0,
}


class Oracle(Callback):
    """Norms of both gradients of each optimizer step of two micro-batches, from the hidden states on."""

    def __init__(self):
        self.open, self.ratios, self.weights = [], [], []

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        hidden = module.backbone.encode(batch.inputs).detach().requires_grad_()
        logits, targets = module.backbone.head(hidden), batch.labels[:, 1:]
        ce = F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(), reduction="sum")
        numbers = module.numbers.is_numeric(targets).sum().item()
        numeric = module.objective.numeric_loss.from_logits(logits, batch.labels) * numbers
        gradients = [torch.autograd.grad(each, hidden, retain_graph=True)[0] for each in (ce, numeric)]
        self.open.append((*gradients, (targets != -100).sum().item(), numbers))

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if len(self.open) == 2:
            ce, numeric, supervised, numbers = zip(*self.open, strict=True)
            norms = [torch.cat([each.flatten() for each in both]).norm().item() for both in (ce, numeric)]
            self.ratios.append((norms[0] / sum(supervised), norms[1] / sum(numbers)))
            self.weights.append(float(trainer.callback_metrics["train/loss_weight"]))
            self.open = []


def fit(loss, balance, steps, **backbone):
    torch.manual_seed(0)
    made = SMMDModule(LanguageBackbone("tiny:llama", **backbone), loss, "auto", weight_balance=balance)
    data = TextMathDataModule("tiny:llama", DrawnArithmetic(train_size=64), batch_size=4)
    seen = Oracle()
    Trainer(**QUIET, max_steps=steps, accumulate_grad_batches=2, callbacks=[seen]).fit(made, data)
    return made, seen


@pytest.mark.parametrize("loss", [SMMDLoss, NTLWASLoss, WholeNumberLoss])
def test_the_weight_gives_the_numeric_gradient_its_share(loss):
    made, seen = fit(loss(), WeightBalance(ratio=0.25, steps=3), steps=4, head_chunk=5)
    ce, numeric = (math.fsum(norms) for norms in zip(*seen.ratios[:3], strict=True))
    assert made.objective.weight == pytest.approx(0.25 * ce / numeric, rel=1e-4)
    assert seen.weights == [0.0, 0.0, 0.0, pytest.approx(made.objective.weight)]
    assert made.objective.loss_weight == "auto"


def test_it_is_measured_also_where_nothing_below_the_head_is_trained():
    made, seen = fit(SMMDLoss(), WeightBalance(ratio=1.0, steps=1), steps=1, freeze=["model.*embed*", "model.*layers*"])
    assert made.objective.weight == pytest.approx(seen.ratios[0][0] / seen.ratios[0][1], rel=1e-4)


def test_a_checkpoint_keeps_it_and_another_ratio_uses_what_was_measured(tmp_path):
    made, _ = fit(SMMDLoss(), WeightBalance(ratio=0.25, steps=1), steps=1)
    made.trainer.save_checkpoint(tmp_path / "a.ckpt")
    loaded = SMMDModule.load_from_checkpoint(tmp_path / "a.ckpt")
    assert loaded.objective.weight == made.objective.weight
    assert loaded.weight_balance == made.weight_balance
    other = SMMDModule.load_from_checkpoint(tmp_path / "a.ckpt", weight_balance={"ratio": 0.5, "steps": 1})
    assert other.objective.weight == pytest.approx(2 * made.objective.weight)


def test_steps_without_numbers_and_with_gradients_that_are_not_finite_do_not_count():
    weight = MeasuredWeight(WeightBalance(ratio=1.0, steps=1))
    weight.add(4.0, 0.0, supervised=2, numeric=0)
    weight.add(math.nan, 1.0, supervised=2, numeric=1)
    weight.add(4.0, math.inf, supervised=2, numeric=1)
    assert weight.measuring
    weight.add(16.0, 1.0, supervised=2, numeric=1)
    assert (weight.measuring, weight.value) == (False, 2.0)


def test_a_loss_without_a_gradient_is_an_error():
    weight = MeasuredWeight(WeightBalance(steps=1))
    with pytest.raises(RuntimeError, match="auto has measured 1 steps, and the numeric loss had no gradient"):
        weight.add(4.0, 0.0, supervised=2, numeric=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeightBalance(ratio=0.0), "ratio must be a finite number above 0, got 0.0"),
        (lambda: WeightBalance(steps=0), "steps must be at least 1, got 0"),
        (lambda: NumericObjective(None, "auto"), "auto needs a numeric loss"),
        (lambda: NumericObjective(SMMDLoss(), "some"), "or auto, got some"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
