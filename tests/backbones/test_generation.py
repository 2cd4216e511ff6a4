"""Generation: greedy, left padded, and the same whatever else is in the batch."""

import pytest
import torch
from tiny_chats import Row, encode, make, picture

ROWS = [
    Row("What time is it?", pictures=(picture(0),)),
    Row("And this one, as the third clock on this wall?", pictures=(picture(1, (96, 48)),)),
    Row("Which of both?", pictures=(picture(2), picture(3))),
]


def sharpen(backbone):
    """Makes neighbouring logits differ enough that rounding does not choose among equals."""
    with torch.no_grad():
        backbone.causal.get_output_embeddings().weight.mul_(10)
    return backbone


def until_end(tokens, end):
    ids = tokens.tolist()
    return ids[: ids.index(end) + 1] if end in ids else ids


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava", "llava-onevision"])
def test_a_batch_gives_what_its_rows_give_alone(name):
    rows = [Row(row.question) for row in ROWS] if name in ("llama", "qwen2") else [*ROWS, Row("No picture here.")]
    backbone = sharpen(make(name))
    end = backbone.causal.generation_config.eos_token_id
    together = backbone.generate(encode(name, rows, side="left", answers=False), max_new_tokens=8)
    for row, tokens in zip(rows, together, strict=True):
        alone = backbone.generate(encode(name, [row], side="left", answers=False), max_new_tokens=8)[0]
        assert until_end(tokens, end) == until_end(alone, end)


def test_generation_equals_arg_max_by_hand():
    backbone = make("qwen2-vl")
    inputs = encode("qwen2-vl", ROWS[:1], side="left", answers=False)
    tokens = backbone.generate(inputs, max_new_tokens=3)[0].tolist()
    backbone.eval()
    grown = dict(inputs)
    for token in tokens:
        with torch.no_grad():
            assert int(backbone.model(**grown).logits[0, -1].argmax()) == token
        grown["input_ids"] = torch.cat([grown["input_ids"], torch.tensor([[token]])], dim=1)
        grown["attention_mask"] = torch.ones_like(grown["input_ids"])
        grown["mm_token_type_ids"] = torch.nn.functional.pad(grown["mm_token_type_ids"], (0, 1))


def test_modes_and_gradients_are_left_as_they_were():
    backbone = make("llama", gradient_checkpointing=True)
    backbone.model.model.layers[0].eval()
    modes = {name: module.training for name, module in backbone.named_modules()}
    backbone.generate(encode("llama", [Row("What time is it?")], answers=False), max_new_tokens=2)
    assert {name: module.training for name, module in backbone.named_modules()} == modes
    assert torch.is_grad_enabled()


def test_a_models_own_sampling_settings_are_not_used():
    backbone = make("llama")
    inputs = encode("llama", [Row("What time is it?")], answers=False)
    greedy = backbone.generate(inputs, max_new_tokens=8)
    settings = backbone.model.generation_config
    settings.do_sample, settings.temperature, settings.repetition_penalty = True, 5.0, 3.0
    assert torch.equal(backbone.generate(inputs, max_new_tokens=8), greedy)
    assert not torch.equal(backbone.generate(inputs, max_new_tokens=8, repetition_penalty=3.0), greedy)


def test_options_reach_generation():
    backbone = make("llama")
    inputs = encode("llama", [Row("What time is it?")], answers=False)
    first = int(backbone.generate(inputs, max_new_tokens=8)[0, 0])
    assert backbone.generate(inputs, max_new_tokens=8, eos_token_id=[first]).shape == (1, 1)
    output = backbone.generate(inputs, max_new_tokens=8, num_beams=2, do_sample=True)
    assert output.shape[1] <= 8
