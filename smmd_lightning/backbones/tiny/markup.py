"""The special tokens and chat templates of tiny models, as their families write them.

One real example, Qwen-VL's, where `<|image_pad|>` becomes one token per patch in the processor::

    <|im_start|>user
    <|vision_start|><|image_pad|><|vision_end|>What time is it?<|im_end|>
    <|im_start|>assistant
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Markup:
    """How a family marks up a chat.

    Attributes:
        tokens: All special tokens, in id order.
        end: The token that ends an answer.
        pad: The padding token.
        begin: The token that the tokenizer itself puts before a text; None when it does not.
        template: Jinja chat template for messages whose content is a string or a list of image and text items.
    """

    tokens: tuple[str, ...]
    end: str
    pad: str
    begin: str | None
    template: str


def _content(image: str = "") -> str:
    """The part of a template that writes one message's content."""
    return (
        "{% if message['content'] is string %}{{ message['content'] }}"
        "{% else %}{% for item in message['content'] %}"
        "{% if item['type'] == 'image' %}{{ '" + image + "' }}{% else %}{{ item['text'] }}{% endif %}"
        "{% endfor %}{% endif %}"
    )


def _chatml(image: str = "") -> str:
    """The turns of Qwen and its relatives; `image` stands for one image."""
    return (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
        + _content(image)
        + "{{ '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )


LLAMA = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' }}" + _content() + "{{ ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' }}" + _content() + "{{ eos_token }}"
    "{% else %}" + _content() + "{{ '\\n' }}{% endif %}{% endfor %}"
)
LLAVA = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'USER: ' }}" + _content("<image>\\n") + "{{ ' ' }}"
    "{% elif message['role'] == 'assistant' %}{{ 'ASSISTANT: ' }}" + _content() + "{{ eos_token }}"
    "{% else %}" + _content() + "{{ ' ' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}"
    + _content()
    + "{{ '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '[INST]' }}" + _content("[IMG]") + "{{ '[/INST]' }}"
    "{% elif message['role'] == 'assistant' %}" + _content() + "{{ eos_token }}"
    "{% else %}{{ '[SYSTEM_PROMPT]' }}" + _content() + "{{ '[/SYSTEM_PROMPT]' }}{% endif %}{% endfor %}"
)
MISTRAL_TOKENS = (
    "<s>", "</s>", "<pad>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
)  # fmt: skip
QWEN_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN_VL_TOKENS = (*QWEN_TOKENS, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
ONEVISION_TOKENS = (*QWEN_TOKENS, "<image>", "<video>")
QWEN_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"

MARKUPS = {
    "llama": Markup(("<s>", "</s>", "<pad>"), "</s>", "<pad>", "<s>", LLAMA),
    "llava": Markup(("<s>", "</s>", "<pad>", "<image>"), "</s>", "<pad>", "<s>", LLAVA),
    "gemma": Markup(
        ("<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>"), "<end_of_turn>", "<pad>", "<bos>", GEMMA
    ),
    "mistral3": Markup(MISTRAL_TOKENS, "</s>", "<pad>", "<s>", MISTRAL),
    "qwen": Markup(QWEN_TOKENS, "<|im_end|>", "<|endoftext|>", None, _chatml()),
    "qwen-vl": Markup(QWEN_VL_TOKENS, "<|im_end|>", "<|endoftext|>", None, _chatml(QWEN_IMAGE)),
    "llava-onevision": Markup(ONEVISION_TOKENS, "<|im_end|>", "<|endoftext|>", None, _chatml("<image>\\n")),
}
