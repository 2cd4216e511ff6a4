"""Packed against padded: the same loss and gradients, in every implementation of attention that may run here."""

import pytest
import torch

from datamodules.pipeline.collate import Collator
from smmd_lightning import NumericVocabulary, SMMDLoss
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.objective import NumericObjective
from smmd_lightning.types import NumericExample

EXAMPLES = [
    NumericExample(id=str(number), prompt=prompt, answer=answer)
    for number, (prompt, answer) in enumerate(
        [("3 + 4 = ?", "7"), ("What is 12 + 30, and what is 7 times 6?", "42"), ("1 + 1?", "2"), ("9 - 8?", "1")]
    )
]


def loss_and_gradient(backbone, pack, counted=None):
    processor = load_processor(backbone.path)
    batch = Collator(processor, pack=pack)(EXAMPLES, counted)
    assert batch.inputs["input_ids"].shape[0] == (1 if pack else len(EXAMPLES))
    vocabulary = NumericVocabulary.from_tokenizer(processor)
    objective = NumericObjective(SMMDLoss(), 0.3)
    objective.bind(vocabulary, backbone.head_rows)
    output = objective(backbone, batch.inputs, batch.labels)
    backbone.zero_grad()
    output.loss.backward()
    gradients = {n: p.grad.clone() for n, p in backbone.named_parameters() if p.grad is not None}
    return output, gradients


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("path", ["tiny:llama", "tiny:qwen2"])
@pytest.mark.parametrize("counted", [None, [True, False, True, True]])
def test_packed_rows_cost_what_padded_ones_do(path, attention, counted):
    backbone = LanguageBackbone(path, attention=attention)
    backbone.load()
    packed, gradients = loss_and_gradient(backbone, True, counted)
    padded, expected = loss_and_gradient(backbone, False, counted)
    assert (packed.supervised, packed.numeric) == (padded.supervised, padded.numeric)
    torch.testing.assert_close(packed.loss, padded.loss, rtol=1e-5, atol=1e-6)
    assert gradients.keys() == expected.keys()
    for name in expected:
        scale = expected[name].abs().max().item()
        torch.testing.assert_close(gradients[name], expected[name], rtol=1e-5, atol=1e-5 * max(scale, 1e-3))


def test_a_model_that_mixes_packed_rows_is_refused_by_name(monkeypatch):
    backbone = LanguageBackbone("tiny:llama")
    backbone.load()
    original = type(backbone.causal.base_model).forward

    def deaf(self, input_ids, position_ids=None, **options):  # sees positions one after the other, as in one long row
        return original(self, input_ids=input_ids, **options)

    monkeypatch.setattr(type(backbone.causal.base_model), "forward", deaf)
    with pytest.raises(ValueError, match="LlamaForCausalLM with attention='sdpa' mixes rows that are packed"):
        loss_and_gradient(backbone, True)


def test_packing_is_refused_where_images_may_come():
    with pytest.raises(ValueError, match="pack=true is for text"):
        Collator(load_processor("tiny:qwen2-vl"), pack=True)
