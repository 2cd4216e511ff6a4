"""The likeliest whole answers, against every continuation there is, asked one by one."""

import itertools

import pytest
import torch
from tiny_chats import Row, encode, make, picture, two_rows

from smmd_lightning.backbones.processors import load_processor

PIECES = ["0", "1", "2", ":"]


@torch.no_grad()
def every_answer(backbone, row, pieces, end, longest):
    """Probability of each continuation of one prompt by pieces and the end token, by plain forward passes."""
    found = {}
    prompt = row["input_ids"].shape[1]
    for length in range(longest + 1):
        for ids in itertools.product(pieces, repeat=length):
            answer = [*ids, end][:longest]
            if tuple(answer) in found:
                continue
            more = torch.tensor([answer])
            whole = dict(row)
            whole["input_ids"] = torch.cat([row["input_ids"], more], 1)
            whole["attention_mask"] = torch.cat([row["attention_mask"], torch.ones_like(more)], 1)
            if "mm_token_type_ids" in row:
                whole["mm_token_type_ids"] = torch.cat([row["mm_token_type_ids"], torch.zeros_like(more)], 1)
            log_p = backbone.causal(**whole).logits[0].double().log_softmax(-1)
            steps = [log_p[prompt - 1 + step, token] for step, token in enumerate(answer)]
            found[tuple(answer)] = sum(steps).exp().item()
    return found


def only(pieces, causal, end):
    """Leaves the model nothing to say but the pieces and the end."""
    with torch.no_grad():
        head = causal.get_output_embeddings()
        causal.get_output_embeddings().bias = torch.nn.Parameter(torch.full((head.weight.shape[0],), -1e4))
        head.bias[[*pieces, end]] = torch.linspace(-0.5, 0.5, len(pieces) + 1)


@pytest.mark.parametrize("preset", ["llama", "llava", "qwen2.5-vl"])
def test_the_likeliest_answers_and_their_probabilities_are_those_of_enumeration(preset):
    torch.manual_seed(0)
    backbone = make(preset).eval()
    tokenizer = load_processor(f"tiny:{preset}")
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    pieces = tokenizer.convert_tokens_to_ids(PIECES)
    end = backbone.causal.generation_config.eos_token_id
    end = end[0] if isinstance(end, list) else end
    only(pieces, backbone.causal, end)
    inputs = encode(preset, two_rows(), side="left", answers=False)
    alone = encode(preset, two_rows()[:1], side="left", answers=False)
    everything = every_answer(backbone, alone, pieces, end, 3)
    assert sum(everything.values()) == pytest.approx(1, abs=1e-6)

    ids_BWL, log_p_BW = backbone.likely(inputs, max_new_tokens=3, most=5**3, eos_token_id=[end])
    pad = backbone.causal.generation_config.pad_token_id
    pad = end if pad is None else pad
    found = {}
    for ids_L, log_p in zip(ids_BWL[0].tolist(), log_p_BW[0].tolist(), strict=True):
        answer = ids_L[: ids_L.index(end) + 1] if end in ids_L else ids_L
        if log_p > -1e3:
            found[tuple(answer)] = torch.tensor(log_p).double().exp().item()
    assert found.keys() == everything.keys()
    assert found == {key: pytest.approx(value, rel=1e-4) for key, value in everything.items()}

    few, few_p = backbone.likely(inputs, max_new_tokens=3, most=4, eos_token_id=[end])
    assert few.shape[:2] == (2, 4)
    assert torch.equal(few_p.sort(dim=1, descending=True).values, few_p)
    assert torch.all(few_p.exp().sum(1) <= 1 + 1e-5)


def test_rows_of_several_pictures_are_answered_as_alone_or_refused_where_they_would_be_mixed_up(monkeypatch):
    torch.manual_seed(0)
    backbone = make("llava")
    rows = [Row("?", pictures=(picture(1), picture(2))), Row("?", pictures=(picture(3), picture(4)))]
    both = backbone.likely(encode("llava", rows, side="left", answers=False), max_new_tokens=2, most=3)
    for place, row in enumerate(rows):
        ids, log_p = backbone.likely(encode("llava", [row], side="left", answers=False), max_new_tokens=2, most=3)
        assert torch.equal(ids[0], both[0][place])
        torch.testing.assert_close(log_p[0], both[1][place], rtol=1e-5, atol=1e-5)
    monkeypatch.setattr("smmd_lightning.backbones.generation.repeats_pictures_by_row", lambda model: False)
    with pytest.raises(ValueError, match=r"set model\.likely_answers to 0"):
        backbone.likely(encode("llava", rows, side="left", answers=False), max_new_tokens=2, most=2)
