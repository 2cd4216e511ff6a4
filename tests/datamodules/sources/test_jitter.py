"""Label jitter: draws follow the law, are functions of their key, and never reach evaluation."""

import math
from collections import Counter

import pytest
import torch

from datamodules import ClockDataModule, DrawnClocks
from datamodules.base import NumericDataModule
from datamodules.sources.jitter import JitteredSource
from smmd_lightning.answers.nearby import AnswerLaw
from smmd_lightning.losses import WholeNumberLoss
from smmd_lightning.losses.whole_number import pieces_of
from smmd_lightning.types import NumericExample, SampleKey
from smmd_lightning.vocabulary import NumericVocabulary


class Fixed:
    """Samples that all have one answer."""

    def __init__(self, answer="98", size=8):
        self.answer, self.size = answer, size

    def __len__(self):
        return self.size

    def example(self, key):
        return NumericExample(str(key.index), "What?", self.answer, meta={"true": self.answer})


class FixedModule(NumericDataModule):
    def __init__(self, **common):
        super().__init__("tiny:qwen2", generation_limit=0, batch_size=2, **common)

    def source(self, split):
        return Fixed("9")


def test_draws_follow_the_law():
    law, draws = AnswerLaw(widths=(1.5,)), 4000
    source = JitteredSource(Fixed(), law, seed=3)
    drawn = Counter(source.example(SampleKey(epoch, index)).answer for epoch in range(draws // 8) for index in range(8))
    masses = dict(law.near("98"))
    assert set(drawn) <= set(masses)
    # Pearson's statistic over the answers that are expected five times or more, the rest together.
    frequent = {answer: mass * draws for answer, mass in masses.items() if mass * draws >= 5}
    pairs = [(drawn[answer], expected) for answer, expected in frequent.items()]
    rest = draws - sum(frequent.values())
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in pairs)
    statistic += (draws - sum(seen for seen, _ in pairs) - rest) ** 2 / rest
    freedom = len(pairs)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_a_draw_is_a_function_of_seed_epoch_and_index():
    def drawn(seed, epochs=range(30)):
        source = JitteredSource(Fixed(), AnswerLaw(), seed)
        return [source.example(SampleKey(epoch, index)).answer for epoch in epochs for index in range(8)]

    assert drawn(0) == drawn(0)
    assert drawn(0)[-8:] == drawn(0, epochs=[29])  # whatever was read before
    assert drawn(0) != drawn(1)
    assert drawn(0, [0]) != drawn(0, [1])


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("03:59", "", ""),
        ("48 + 24 = 72, so it is 72 cm.", "48 + 24 = 72, so it is ", " cm."),
        ("#### -1.50", "#### ", ""),
        ("5-3", None, None),  # no number of its own stands at the end
        ("1,005", None, None),
        ("1.2.3", None, None),
        ("three", None, None),
        ("99:99", None, None),
    ],
)
def test_the_last_number_is_drawn_and_the_rest_of_the_text_stays(text, begins, ends):
    found = {
        JitteredSource(Fixed(text), AnswerLaw(widths=(3.0,)), 0).example(SampleKey(epoch, 0)).answer
        for epoch in range(30)
    }
    if begins is None:
        assert found == {text}
        return
    assert len(found) > 3
    assert all(answer.startswith(begins) and answer.endswith(ends) for answer in found)


def test_training_is_jittered_and_evaluation_is_not():
    data = FixedModule(answer_jitter=AnswerLaw(widths=(2.0,)))
    train = [example.answer for batch in data.train_dataloader() for example in batch.examples]
    assert len(set(train)) > 2
    assert {example.meta["true"] for batch in data.train_dataloader() for example in batch.examples} == {"9"}
    for loader in (data.val_dataloader()[0], data.test_dataloader()):
        assert {example.answer for batch in loader for example in batch.examples} == {"9"}
    without = FixedModule()
    assert {example.answer for batch in without.train_dataloader() for example in batch.examples} == {"9"}


def test_a_resumed_loader_draws_what_an_uninterrupted_one_draws_and_refuses_another_law():
    def loader(**law):
        return FixedModule(answer_jitter=AnswerLaw(widths=(2.0,), **law)).train_dataloader()

    def answers(batches):
        return [example.answer for batch in batches for example in batch.examples]

    first = loader()
    answers(first)
    whole = answers(first)  # the second epoch
    again, state = loader(), None
    answers(again)
    for number, _ in enumerate(again):
        if number == 1:
            state = again.state_dict()
            break
    resumed = loader()
    resumed.load_state_dict(state)
    assert answers(resumed) == whole[4:]
    with pytest.raises(ValueError, match="written with other data"):
        loader(shape="laplace").load_state_dict(state)


def test_clocks_are_jittered_as_times_on_the_dial():
    data = ClockDataModule("tiny:llava", DrawnClocks(), answer_jitter=AnswerLaw(widths=(2.0,)))
    for index in range(6):
        drawn, true = (source.example(SampleKey(0, index)) for source in (data._source("train"), data.source("train")))
        assert drawn.answer in dict(AnswerLaw(widths=(2.0,)).near(true.answer))
        assert drawn.meta == true.meta


@pytest.mark.parametrize("text", ["9", "98", "100", "09:59"])
def test_the_mean_gradient_of_drawn_labels_is_that_of_the_soft_target_times_the_mass_of_its_prefix(text):
    """Cross-entropy, averaged over the law, at each position of the true answer, in a model that is a table."""
    texts = [*"0123456789", ".", ":", "-"]
    pieces = {piece: place for place, piece in enumerate(texts)}
    numbers = NumericVocabulary(range(10), range(10), list("0123456789"), pieces, 1)
    end, law = len(texts), AnswerLaw(widths=(1.5,))
    true = [*(pieces[piece] for piece in pieces_of(text, 1)), end]
    logits_SV = torch.randn(len(true), end + 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    drawn_SV = logits_SV.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    prefix_S = torch.zeros(len(true), dtype=torch.float64)
    for answer, mass in law.near(text):
        ids = [*(pieces[piece] for piece in pieces_of(answer, 1)), end]
        for place in range(len(true)):
            if ids[:place] != true[:place]:
                break
            prefix_S[place] += mass
            total = total - mass * drawn_SV[place].log_softmax(0)[ids[place]]
    (mean_SV,) = torch.autograd.grad(total, drawn_SV)

    loss = WholeNumberLoss(widths=[1.5]).bind(numbers)
    soft_SV = logits_SV.clone().requires_grad_()
    labels = torch.tensor([true])
    value = loss.from_logits(soft_SV[None], labels, shift=False) * numbers.is_numeric(labels).sum()
    (gradient_SV,) = torch.autograd.grad(value, soft_SV)
    torch.testing.assert_close(mean_SV, prefix_S[:, None] * gradient_SV, rtol=1e-5, atol=1e-6)  # masses are float32
    assert prefix_S[0] == pytest.approx(1)
