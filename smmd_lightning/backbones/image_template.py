"""Chat templates of language models, taught to read messages that hold pictures."""

from __future__ import annotations

BEFORE = (
    "{%- set joined = namespace(messages=[]) -%}"
    "{%- for message in messages -%}"
    "{%- set said = namespace(text='') -%}"
    "{%- if message['content'] is string -%}{%- set said.text = message['content'] -%}"
    "{%- else -%}{%- for item in message['content'] -%}"
    "{%- set said.text = said.text + (IMAGE + '\\n' if item['type'] == 'image' else item['text']) -%}"
    "{%- endfor -%}{%- endif -%}"
    "{%- set joined.messages = joined.messages + [{'role': message['role'], 'content': said.text}] -%}"
    "{%- endfor -%}"
    "{%- set messages = joined.messages -%}"
)
"""Turns each message's list of pictures and texts into one text, which every template can write."""

PLAIN = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'USER: ' + message['content'] + '\\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ 'ASSISTANT: ' + message['content'] + eos_token }}"
    "{% else %}{{ message['content'] + '\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
"""For language models that come without a template (and with an end token)."""


def with_images(template: str | None, image_token: str) -> str:
    r"""Returns a template that writes a picture as its token and a line end, and texts as before.

    Args:
        template: The language model's own Jinja template; None: a plain one.
        image_token: What stands for a picture.

    Examples:
        >>> import jinja2
        >>> made = jinja2.Template(with_images("{{ messages[0]['content'] }}", "<image>"))
        >>> made.render(messages=[{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}])
        '<image>\nWhy?'
        >>> made.render(messages=[{"role": "user", "content": "Why?"}])
        'Why?'
    """
    return BEFORE.replace("IMAGE", repr(image_token)) + (PLAIN if template is None else template)
