"""Exact token ids: the tokenizer of tiny models is small enough to write them down."""

import pytest
from tiny_chats import TEXT, VISION

from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.tiny.tokenizer import WORDS, build


def tokenizer_of(name):
    processor = load_processor(f"tiny:{name}")
    return getattr(processor, "tokenizer", processor)


def test_exact_ids_of_a_prompt():
    tokenizer = tokenizer_of("qwen2-vl")
    text = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What time? 03:05<|im_end|>"
    picture = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
    order = ["<|im_start|>", "user", "Ċ", *picture, "What", "Ġtime", "?", "Ġ", *"03:05", "<|im_end|>"]
    assert tokenizer.tokenize(text) == order
    assert tokenizer.encode(text) == [362, 332, 198, 364, 366, 365, 272, 358, 30, 220, 15, 18, 25, 15, 20, 363]


@pytest.mark.parametrize("name", [*TEXT, *VISION])
def test_loaded_tokenizers_agree_with_the_built_one_and_give_the_text_back(name):
    """transformers rebuilds some families' tokenizers from their vocabulary; that must change nothing."""
    from smmd_lightning.backbones.tiny.families import MARKUP

    loaded, built = tokenizer_of(name), build(MARKUP[name])
    text = "What time does this clock show?\n  03:05, é ½ 漢 ٣  !"
    assert loaded.encode(text) == built.encode(text)
    assert loaded.decode(loaded.encode(text, add_special_tokens=False)) == text
    assert len(loaded) == len(built)
    assert (loaded.eos_token, loaded.pad_token) == (built.eos_token, built.pad_token)


def test_every_word_and_digit_is_one_token():
    tokenizer = build("qwen")
    for surface in [*WORDS, *"0123456789"]:
        assert len(tokenizer.encode(surface)) == 1, surface
    assert tokenizer.tokenize("1234") == list("1234")


def test_a_full_chat_reads_as_its_family_writes_it():
    messages = [
        {"role": "user", "content": [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "Which?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "3"}]},
    ]
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    expected = {
        "qwen2-vl": f"<|im_start|>user\n{image}{image}Which?<|im_end|>\n<|im_start|>assistant\n3<|im_end|>\n",
        "llava": "USER: <image>\n<image>\nWhich? ASSISTANT: 3</s>",
        "llava-onevision": "<|im_start|>user\n<image>\n<image>\nWhich?<|im_end|>\n<|im_start|>assistant\n3<|im_end|>\n",
    }
    for name, text in expected.items():
        processor = load_processor(f"tiny:{name}")
        assert processor.apply_chat_template(messages, tokenize=False) == text
        prompt = processor.apply_chat_template(messages[:1], tokenize=False, add_generation_prompt=True)
        assert text.startswith(prompt)
    chat = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "3"}]
    assert tokenizer_of("llama").apply_chat_template(chat, tokenize=False) == "<s>[INST] Which? [/INST] 3</s>"
