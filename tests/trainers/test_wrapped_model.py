"""A model's own forward, scored at supervised positions only."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from smmd_lightning.backbones.locate import locate
from smmd_lightning.trainers.wrapped_model import score_wrapped


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_pretrained(locate("tiny:qwen2")).eval()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 60, (3, 12), generator=generator)
    labels = ids.clone()
    labels[0, :7] = labels[1, 3:] = labels[2, ::2] = -100
    return {"input_ids": ids}, labels


def score(logits_SV, targets_S):
    assert logits_SV.dim() == 2
    return cross_entropy(logits_SV, targets_S, reduction="none"), targets_S


def gradients(model):
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize("chunk", [2, 7, 2048])
def test_scores_and_gradients_are_those_of_full_logits(model, batch, chunk):
    inputs, labels = batch
    logits, targets = model(**inputs).logits[:, :-1], labels[:, 1:]
    kept = targets != -100
    expected = cross_entropy(logits[kept], targets[kept], reduction="none")
    (expected * torch.arange(1, len(expected) + 1)).sum().backward()
    wanted = gradients(model)

    ce, seen = score_wrapped(model, inputs, labels, score, chunk=chunk)
    assert torch.equal(seen, targets[kept])
    torch.testing.assert_close(ce, expected)
    (ce * torch.arange(1, len(ce) + 1)).sum().backward()
    found = gradients(model)
    assert found.keys() == wanted.keys()
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-4, atol=1e-5)


def test_without_any_label_the_result_is_empty_and_joined_to_the_graph(model, batch):
    inputs, labels = batch
    ce, _ = score_wrapped(model, inputs, torch.full_like(labels, -100), score)
    assert ce.shape == (0,)
    ce.sum().backward()
    assert gradients(model)


def test_the_head_is_itself_again_even_after_an_error(model, batch):
    inputs, labels = batch
    before = model(**inputs).logits
    with pytest.raises(ValueError, match=r"3, 12.*3, 11"):
        score_wrapped(model, inputs, labels[:, 1:], score)
    assert torch.equal(model(**inputs).logits, before)


def test_a_model_without_a_head_is_named(model, batch):
    inputs, labels = batch
    with pytest.raises(ValueError, match="Qwen2Model has no output head"):
        score_wrapped(model.model, inputs, labels, score)
