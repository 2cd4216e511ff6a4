"""Shape legend: B rows, T positions, V head rows, D hidden size."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from smmd_lightning import IGNORE_INDEX, NumericVocabulary, SMMDLoss
from smmd_lightning.loss_sums import StepCounts
from smmd_lightning.objective import NumericObjective

V, D = 23, 8
DIGITS = NumericVocabulary(token_ids=range(5, 15), values=range(10))


class ToyBackbone(nn.Module):
    """What a backbone promises, in its plainest form: all logits, then the supervised ones, scored in chunks."""

    def __init__(self, chunk=3):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.lm_head, self.chunk = nn.Embedding(V, D), nn.Linear(D, V), chunk

    def logits_BTV(self, inputs):
        return self.lm_head(self.embed(inputs["input_ids"]))

    def forward(self, inputs, labels, score):
        keep = labels[:, 1:] != IGNORE_INDEX
        logits, targets = self.logits_BTV(inputs)[:, :-1][keep], labels[:, 1:][keep]
        pairs = zip(logits.split(self.chunk), targets.split(self.chunk), strict=True)
        parts = [score(*pair) for pair in pairs]
        return tuple(torch.cat(outputs) for outputs in zip(*parts, strict=True))


def rows(count, length=9, answers=None, seed=0):
    """Random ids; row i is supervised on its last answers[i] tokens."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, V, (count, length), generator=generator)
    labels = torch.full_like(ids, IGNORE_INDEX)
    for row, answer in enumerate(answers or [4] * count):
        if answer:
            labels[row, -answer:] = ids[row, -answer:]
    return {"input_ids": ids}, labels


def objective(loss=True, weight=0.7):
    made = NumericObjective(SMMDLoss() if loss else None, weight)
    made.bind(DIGITS if loss else None, V)
    return made


def gradient(backbone):
    return torch.cat([parameter.grad.flatten() for parameter in backbone.parameters()])


def test_a_share_of_the_weight_is_that_weight():
    backbone, (inputs, labels) = ToyBackbone(), rows(3)
    scheduled = objective(weight=0.8)(backbone, inputs, labels, share=0.25)
    torch.testing.assert_close(scheduled.loss, objective(weight=0.2)(backbone, inputs, labels).loss)
    nothing = objective(weight=0.8)(backbone, inputs, labels, share=0.0)
    torch.testing.assert_close(nothing.loss, nothing.metrics["ce"])


def test_equals_the_loss_written_over_all_logits():
    backbone, (inputs, labels) = ToyBackbone(), rows(5, answers=[4, 1, 8, 2, 5])
    output = objective()(backbone, inputs, labels)
    output.loss.backward()
    ours = gradient(backbone)
    backbone.zero_grad()
    logits = backbone.logits_BTV(inputs)
    ce = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    numeric = SMMDLoss().bind(DIGITS).from_logits(logits, labels)
    (ce + 0.7 * numeric).backward()
    torch.testing.assert_close(output.loss, ce + 0.7 * numeric)
    torch.testing.assert_close(output.metrics["ce"], ce.detach())
    torch.testing.assert_close(output.metrics["numeric"], numeric.detach())
    torch.testing.assert_close(ours, gradient(backbone))


@pytest.mark.parametrize("loss", [True, False])
def test_micro_batches_with_few_and_many_tokens_equal_one_large_batch(loss):
    backbone, (inputs, labels) = ToyBackbone(), rows(6, length=110, answers=[1, 100, 3, 0, 7, 50])
    whole = objective(loss)(backbone, inputs, labels)
    whole.loss.backward()
    expected = gradient(backbone)
    backbone.zero_grad()
    counts = StepCounts(whole.supervised, whole.numeric)
    total = 0.0
    for row in range(6):
        part = objective(loss)(
            backbone, {"input_ids": inputs["input_ids"][row : row + 1]}, labels[row : row + 1], counts
        )
        part.loss.backward()
        total += part.loss.detach()
    torch.testing.assert_close(total, whole.loss.detach())
    torch.testing.assert_close(gradient(backbone), expected)


def test_counts_are_those_of_the_targets():
    made, (_, labels) = objective(), rows(4, answers=[4, 0, 2, 8])
    targets = labels[:, 1:][labels[:, 1:] != IGNORE_INDEX]
    expected = [len(targets), sum(5 <= token < 15 for token in targets.tolist())]
    assert made.count(targets).tolist() == expected
    assert objective(loss=False).count(targets).tolist() == [len(targets), 0]


@pytest.mark.parametrize("token", [None, 20])
def test_a_batch_without_numbers_or_without_labels_gives_a_zero_joined_to_the_graph(token):
    backbone, (inputs, labels) = ToyBackbone(), rows(2, answers=[0, 0])
    if token is not None:
        labels[:, -3:] = token
    output = objective()(backbone, inputs, labels)
    output.loss.backward()
    assert output.numeric == 0
    assert output.metrics["numeric"] == 0
    assert torch.isfinite(output.loss)
    if token is None:
        assert output.supervised == 0
        assert output.loss == 0
    assert all(
        parameter.grad is not None and torch.isfinite(parameter.grad).all() for parameter in backbone.parameters()
    )


def test_a_model_certain_of_every_target_has_no_loss():
    """Labels are shifted exactly once: position t is judged by token t + 1."""

    class Certain(ToyBackbone):
        def logits_BTV(self, inputs):
            return 40.0 * F.one_hot(inputs["input_ids"].roll(-1, dims=1), V).float()

    inputs, labels = rows(3, answers=[8, 5, 2])
    output = objective()(Certain(), inputs, labels)
    assert output.loss < 1e-6


def test_prompt_numbers_never_count_and_every_answer_number_does():
    inputs, labels = rows(1, length=9, answers=[5])
    inputs["input_ids"][0] = torch.tensor([8, 1, 9, 7, 6, 7, 20, 8, 9])  # prompt "3)42", answer "12.34" with 20 = "."
    labels[0, 4:] = inputs["input_ids"][0, 4:]
    output = objective()(ToyBackbone(), inputs, labels)
    assert (output.supervised, output.numeric) == (5, 4)


def test_bfloat16_models_get_float32_losses():
    backbone, (inputs, labels) = ToyBackbone().bfloat16(), rows(3)
    output = objective()(backbone, inputs, labels)
    assert output.loss.dtype == torch.float32
    output.loss.backward()


def test_nothing_of_the_objective_is_saved():
    assert objective().state_dict() == {}


def test_a_weight_below_zero_and_a_missing_vocabulary_are_refused():
    with pytest.raises(ValueError, match="loss_weight must be a finite number of at least 0, or auto, got -1"):
        NumericObjective(None, -1)
    with pytest.raises(ValueError, match="SMMDLoss needs a numeric vocabulary"):
        NumericObjective(SMMDLoss(), 1).bind(None, V)
    with pytest.raises(ValueError, match="12"):
        NumericObjective(SMMDLoss(), 1).bind(DIGITS, 12)


def test_weight_zero_leaves_cross_entropy_alone():
    backbone, (inputs, labels) = ToyBackbone(), rows(3)
    torch.testing.assert_close(
        objective(weight=0.0)(backbone, inputs, labels).loss, objective(loss=False)(backbone, inputs, labels).loss
    )
