"""Tiny backbones and encoded chats for the tests of this folder."""

from dataclasses import dataclass

import torch
from PIL import Image

from smmd_lightning.backbones import LanguageBackbone, VisionLanguageBackbone
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.tiny.presets import PRESETS
from smmd_lightning.types import IGNORE_INDEX

TEXT = ("llama", "qwen2", "qwen3", "gemma3-text")
VISION = ("qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava", "llava-onevision", "llava-next", "mistral3")


def make(name, **settings):
    """A loaded tiny backbone."""
    backbone = (LanguageBackbone if PRESETS[name].family in TEXT else VisionLanguageBackbone)(
        f"tiny:{name}", **settings
    )
    backbone.load()
    return backbone


def picture(seed, size=(64, 64)):
    noise = torch.randint(0, 256, (size[1], size[0], 3), generator=torch.Generator().manual_seed(seed))
    return Image.fromarray(noise.to(torch.uint8).numpy())


@dataclass
class Row:
    question: str
    answer: str = "03:05"
    pictures: tuple = ()


def encode(name, rows, side="right", answers=True):
    """Encodes chats with the model's own processor; labels stand on the last tokens of each answer."""
    processor = load_processor(f"tiny:{name}")
    tokenizer = getattr(processor, "tokenizer", processor)
    texts = []
    for row in rows:
        items = [{"type": "image"} for _ in row.pictures] + [{"type": "text", "text": row.question}]
        messages = [{"role": "user", "content": items}]
        if answers:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": row.answer}]})
        texts.append(processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=not answers))
    options = {"padding": True, "padding_side": side, "return_tensors": "pt", "add_special_tokens": False}
    if tokenizer is processor:
        inputs = dict(processor(texts, **options))
    else:
        pictures = [image for row in rows for image in row.pictures]
        inputs = dict(processor(text=texts, images=pictures or None, **options))
    if not answers:
        return inputs
    labels = torch.full_like(inputs["input_ids"], IGNORE_INDEX)
    for row, mask in enumerate(inputs["attention_mask"]):
        end = int(mask.nonzero().max()) + 1
        labels[row, end - 5 : end] = inputs["input_ids"][row, end - 5 : end]
    return inputs, labels


def cross_entropies(logits, targets):
    """A score: the cross-entropy of each position."""
    return (torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none"),)


def gradients(backbone):
    return {name: p.grad.clone() for name, p in backbone.named_parameters() if p.grad is not None}


def two_rows():
    return [Row("What time is it?", pictures=(picture(0),)), Row("And this?", "12:34", (picture(1, (96, 48)),))]
