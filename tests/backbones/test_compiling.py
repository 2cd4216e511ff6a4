"""Blocks through `torch.compile`: the same numbers, generation as written, and a compiler that is missed early."""

import pytest
import torch
from tiny_chats import cross_entropies, encode, gradients, make, two_rows

from smmd_lightning.backbones import LanguageBackbone, LoRA


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("preset", "options"),
    [
        ("llama", {}),
        pytest.param("llava", {"adapter": LoRA(rank=4)}, marks=pytest.mark.slow),
        pytest.param("qwen2.5-vl", {"gradient_checkpointing": True}, marks=pytest.mark.slow),
    ],
)
def test_compiled_blocks_give_the_loss_the_gradients_and_the_answers_of_plain_ones(preset, options):
    inputs, labels = encode(preset, two_rows())
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        backbone = make(preset, compile_blocks=compiled, **options)
        (losses,) = backbone(inputs, labels, cross_entropies)
        losses.mean().backward()
        answers = backbone.generate(inputs, max_new_tokens=3)
        found.append((losses.detach(), gradients(backbone), answers, sorted(backbone.state_dict())))
        assert all((block._compiled_call_impl is not None) == compiled for block in backbone.blocks)
    plain, compiled = found
    torch.testing.assert_close(compiled[0], plain[0], rtol=1e-5, atol=1e-5)
    assert plain[1].keys() == compiled[1].keys()
    for name, gradient in plain[1].items():
        torch.testing.assert_close(compiled[1][name], gradient, rtol=1e-4, atol=1e-6, msg=name)
    assert torch.equal(compiled[2], plain[2])
    assert compiled[3] == plain[3]  # checkpoints of one load into the other


def test_a_missing_compiler_is_told_before_weights_load(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("smmd_lightning.backbones.compiling.shutil.which", lambda name: None)
    with pytest.raises(ValueError, match="compile_blocks: true needs a C\\+\\+ compiler"):
        LanguageBackbone("a/model/that/does/not/exist", compile_blocks=True).load()
