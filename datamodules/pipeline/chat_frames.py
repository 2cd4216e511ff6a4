"""What a model's chat template writes around a question and its answer.

The template is rendered once per question with a marker for the answer, which tells what stands before the answer, and
what ends it. Questions and answers are plain text: special tokens in them are broken up (`plain_text`).
"""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateError

from datamodules.pipeline.plain_text import PlainText
from smmd_lightning.types import NumericExample

ANSWER_MARK = "\u241eanswer\u241e"
"""Stands for the answer while a template is taken apart; record separators occur in no sensible template."""

FRAMES_KEPT = 1024
"""Most questions whose rendered template is kept."""


class ChatFrames:
    """The texts around questions and answers, one template rendering per question.

    Args:
        processor: A Hugging Face processor (vision-language) or tokenizer (text).
        system_prompt: Text of a system message before the question, where the template has such a role.
        template_options: Further variables for the chat template, `enable_thinking` for example.
        fallback_template: Text around a question for models without chat template; `{prompt}` stands for it.

    Raises:
        ValueError: `fallback_template` does not hold `{prompt}`.
    """

    def __init__(
        self,
        processor: Any,
        *,
        system_prompt: str | None,
        template_options: dict[str, Any] | None,
        fallback_template: str,
    ) -> None:
        if "{prompt}" not in fallback_template:
            raise ValueError(
                f"fallback_template must hold {{prompt}}, where the question goes; got {fallback_template!r}."
            )
        self.processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.system_prompt = system_prompt
        self.template_options = template_options or {}
        self.fallback_template = fallback_template
        self.has_template = getattr(processor, "chat_template", None) is not None
        self.takes_images = hasattr(processor, "image_processor")
        self._plain = PlainText.of(processor)
        self._ends: dict[str, str] = {}
        self._frames: dict[tuple[str, int], tuple[str, str, str]] = {}

    @property
    def stop_ids(self) -> list[int]:
        """Ids of the tokens that end an answer: the tokenizer's own, and those of the templates rendered so far."""
        eos = set() if self.tokenizer.eos_token_id is None else {self.tokenizer.eos_token_id}
        return sorted({self.tokenizer.convert_tokens_to_ids(end) for end in self._ends.values()} | eos)

    def texts(self, example: NumericExample) -> tuple[str, str]:
        """Returns the text before the answer, and the text up to and including the end token.

        Raises:
            ValueError: The template refuses the messages, or drops or changes what it is given.
        """
        question, answer = self._plain(example.prompt), self._plain(example.answer.strip())
        if not self.has_template:
            before = (self.tokenizer.bos_token or "") + self.fallback_template.replace("{prompt}", question)
            return before, f"{before} {answer}{self._eos()}"
        key = (question, len(example.images))
        if key not in self._frames:
            if len(self._frames) >= FRAMES_KEPT:
                self._frames.clear()
            self._frames[key] = self._frame(*key)
        before, space, end = self._frames[key]
        return before, before + space + answer + end

    def _frame(self, question: str, images: int) -> tuple[str, str, str]:
        """Returns what the template writes before the answer, white space that belongs to the answer, and the end."""
        messages: list[dict[str, Any]] = []
        if self.system_prompt is not None:
            messages.append({"role": "system", "content": self._content(self.system_prompt)})
        messages.append({"role": "user", "content": self._content(question, images)})
        marked = self._render([*messages, {"role": "assistant", "content": self._content(ANSWER_MARK)}])
        opened = self._render(messages, add_generation_prompt=True)
        if self.system_prompt is not None and self.system_prompt.strip() not in opened:
            raise ValueError(
                f"The chat template of {self.tokenizer.name_or_path} drops the system message. Leave system_prompt out "
                "and put its text into prompts, or use a template that renders system messages."
            )
        before, mark, after = marked.rpartition(ANSWER_MARK)  # the last: a question may hold the sign itself
        if not mark:
            raise ValueError(
                f"The chat template of {self.tokenizer.name_or_path} drops the assistant's answer, so labels cannot be "
                "placed. Use a template that renders assistant messages."
            )
        space = ""
        if before.startswith(opened) and before[len(opened) :].isspace():
            # "ASSISTANT:" + " 03:05": the space is part of the first answer token in most vocabularies.
            before, space = opened, before[len(opened) :]
        elif not before.startswith(opened):
            raise ValueError(
                f"The chat template of {self.tokenizer.name_or_path} opens an answer with {opened[-80:]!r}, but writes "
                f"a given answer after {before[-80:]!r}: what would be trained is not what would be generated. Set "
                "template_options so that both agree, or use another template."
            )
        if after not in self._ends:
            self._ends[after] = self._end(after)
        return before, space, self._ends[after]

    def _end(self, after: str) -> str:
        """Returns the text that ends an answer: up to the first special token behind it, else the eos token."""
        places = [
            (place, -len(token), token)
            for token in set(self.tokenizer.all_special_tokens) | set(self.tokenizer.get_added_vocab())
            if token and (place := after.find(token)) >= 0 and not after[:place].strip()
        ]
        return min(places)[2] if places else self._eos()

    def _render(self, messages: list[dict[str, Any]], **options: Any) -> str:
        try:
            return self.processor.apply_chat_template(messages, tokenize=False, **self.template_options, **options)
        except TemplateError as error:
            advice = "" if self.system_prompt is None else " If it has no system role, leave system_prompt out."
            raise ValueError(
                f"The chat template of {self.tokenizer.name_or_path} refuses the messages: {error}.{advice}"
            ) from error

    def _content(self, text: str, images: int = 0) -> str | list[dict[str, str]]:
        if not self.takes_images:
            return text
        return [{"type": "image"}] * images + [{"type": "text", "text": text}]

    def _eos(self) -> str:
        if self.tokenizer.eos_token is None:
            raise ValueError(f"The tokenizer {self.tokenizer.name_or_path} has no eos token to end an answer with.")
        return self.tokenizer.eos_token
