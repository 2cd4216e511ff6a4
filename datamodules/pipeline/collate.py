r"""Examples -> model inputs and masked labels, through the model's own processor and chat template.

Unusual: the label mask is never searched for in the text. The template is rendered once per question with a marker for
the answer, which tells what stands before the answer, and what ends it. A row is then `prompt + answer + end`,
tokenised as one text; the number of answer tokens is the difference to the prompt tokenised alone, of which it must be
an exact continuation. So what is trained is what `generate` will see, image tokens included, or there is an error.
Questions and answers are plain text: special tokens in them are broken up (`plain_text`).

One real row of a Qwen-VL model; labels exist for the last part alone::

    <|im_start|>user\n<|vision_start|><|image_pad|>…<|vision_end|>What time …?<|im_end|>\n<|im_start|>assistant\n
    03:05<|im_end|>

Shape legend: B rows, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor

from datamodules.pipeline.packing import pack_rows
from datamodules.pipeline.plain_text import PlainText
from smmd_lightning.types import IGNORE_INDEX, Batch, NumericExample

ANSWER_MARK = "\u241eanswer\u241e"
"""Stands for the answer while a template is taken apart; record separators occur in no sensible template."""

FRAMES_KEPT = 1024
"""Most questions whose rendered template is kept."""


class TooLong(ValueError):
    """Samples of a batch that have more tokens than `max_length` allows.

    Attributes:
        reasons: The message for each such row, by row number.
    """

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__("\n".join(reasons.values()))
        self.reasons = reasons


class Collator:
    """Makes one `Batch` of a list of examples.

    Args:
        processor: A Hugging Face processor (vision-language) or tokenizer (text).
        max_length: Most tokens of a row, image tokens and answer included. Rows are never cut. None: no limit.
        system_prompt: Text of a system message before the question, where the template has such a role.
        template_options: Further variables for the chat template, `enable_thinking` for example.
        fallback_template: Text around a question for models without chat template; `{prompt}` stands for it.
        pack: Put the rows of a batch with answers behind each other into one row, see `pack_rows`.

    Raises:
        ValueError: `pack` with a processor of images.
    """

    def __init__(
        self,
        processor: Any,
        *,
        max_length: int | None = None,
        system_prompt: str | None = None,
        template_options: dict[str, Any] | None = None,
        fallback_template: str = "Question: {prompt}\nAnswer:",
        pack: bool = False,
    ) -> None:
        self.processor = processor
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.max_length = max_length
        self.system_prompt = system_prompt
        self.template_options = template_options or {}
        if "{prompt}" not in fallback_template:
            raise ValueError(
                f"fallback_template must hold {{prompt}}, where the question goes; got {fallback_template!r}."
            )
        self.fallback_template = fallback_template
        self.has_template = getattr(processor, "chat_template", None) is not None
        self.takes_images = hasattr(processor, "image_processor")
        if pack and self.takes_images:
            raise ValueError(
                f"pack=true is for text, but {self.tokenizer.name_or_path} reads images too, and positions of image "
                "tokens cannot be packed. Set pack to false."
            )
        self.pack = pack
        self._plain = PlainText.of(processor)
        self._ends: dict[str, str] = {}
        self._frames: dict[tuple[str, int], tuple[str, str, str]] = {}

    def __call__(
        self, examples: Sequence[NumericExample], counted: Sequence[bool] | None = None, *, generation: bool = False
    ) -> Batch:
        """Collates.

        Args:
            examples: The B rows.
            counted: False for rows that only fill up the batch; they get no labels. None: all count.
            generation: True gives left-padded prompts without answers, False right-padded prompts with answers.

        Returns:
            The batch, with `labels` (B, T) unless `generation`.

        Raises:
            TooLong: Rows have more than `max_length` tokens.
            ValueError: The chat template or tokenizer does not allow a reliable label mask, or an image was given
                to a model that reads text only.
        """
        counted = [True] * len(examples) if counted is None else list(counted)
        prompts, fulls = zip(*(self._texts(example) for example in examples), strict=True)
        inputs = self._encode(prompts if generation else fulls, examples, "left" if generation else "right")
        self._check_lengths(inputs, examples)
        labels = None if generation else self._labels(inputs, prompts, fulls, examples, counted)
        if labels is not None and self.pack:
            inputs, labels = pack_rows(inputs, labels)
        bare = [replace(example, images=()) for example in examples]
        return Batch(inputs=inputs, labels=labels, examples=bare, counted=counted, stop_ids=self.stop_ids)

    @property
    def stop_ids(self) -> list[int]:
        """Ids of the tokens that end an answer: the tokenizer's own, and those of the templates rendered so far."""
        return sorted({self.tokenizer.convert_tokens_to_ids(end) for end in self._ends.values()} | self._eos_ids())

    def _texts(self, example: NumericExample) -> tuple[str, str]:
        """Returns the text before the answer, and the text up to and including the end token."""
        question, answer = self._plain(example.prompt), self._plain(example.answer.strip())
        if not self.has_template:
            before = self.fallback_template.replace("{prompt}", question)
            return self._bos() + before, f"{self._bos()}{before} {answer}{self._eos()}"
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

    def _encode(self, texts: Sequence[str], examples: Sequence[NumericExample], side: str) -> dict[str, Tensor]:
        images = [list(example.images) for example in examples]
        options: dict[str, Any] = {
            "padding": True,
            "padding_side": side,
            "return_tensors": "pt",
            "add_special_tokens": self._lacks_begin(texts[0]),
        }
        if not self.takes_images:
            if any(images):
                raise ValueError(
                    f"{self.tokenizer.name_or_path} reads text only, but sample {examples[0].id} has an image. "
                    "Use a vision-language model (model.backbone.init_args.path)."
                )
            return dict(self.tokenizer(list(texts), **options))
        # Processors take the images of all rows as one flat list, in the order of their placeholders.
        flat = [image for row in images for image in row]
        return dict(self.processor(text=list(texts), images=flat or None, **options))

    def _check_lengths(self, inputs: dict[str, Tensor], examples: Sequence[NumericExample]) -> None:
        if self.max_length is None or inputs["input_ids"].shape[1] <= self.max_length:
            return
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        raise TooLong(
            {
                row: f"sample {example.id} has {length} tokens"
                + (f" with {len(example.images)} image(s)" if example.images else "")
                + f", the limit is max_length={self.max_length}"
                for row, (example, length) in enumerate(zip(examples, lengths, strict=True))
                if length > self.max_length
            }
        )

    def _labels(
        self,
        inputs: dict[str, Tensor],
        prompts: Sequence[str],
        fulls: Sequence[str],
        examples: Sequence[NumericExample],
        counted: Sequence[bool],
    ) -> Tensor:
        """Returns (B, T) labels: the last tokens of each row, as many as the full text has more than the prompt."""
        texts, begin = [*prompts, *fulls], self._lacks_begin(prompts[0])
        plain = self.tokenizer(texts, add_special_tokens=begin)["input_ids"]
        ids, lengths = inputs["input_ids"], inputs["attention_mask"].sum(dim=1).tolist()
        labels = torch.full_like(ids, IGNORE_INDEX)
        for row, (prompt, full) in enumerate(zip(plain[: len(prompts)], plain[len(prompts) :], strict=True)):
            answer = full[len(prompt) :]
            start = lengths[row] - len(answer)
            if full[: len(prompt)] != prompt or ids[row, start : lengths[row]].tolist() != answer:
                raise ValueError(
                    f"Sample {examples[row].id}: the tokens of the prompt change when the answer is put behind it "
                    f"(tokenizer {self.tokenizer.name_or_path}, prompt ends in {prompts[row][-40:]!r}, then "
                    f"{fulls[row][len(prompts[row]) :]!r}), so what would be trained is not what would be generated. "
                    "Let the template or fallback_template end at a token boundary."
                )
            if counted[row]:
                labels[row, start : lengths[row]] = ids[row, start : lengths[row]]
        return labels

    def _lacks_begin(self, text: str) -> bool:
        """Whether the tokenizer is to put its begin token before a text whose template writes none.

        As `apply_chat_template(tokenize=True)` does: with processors of images (LLaVA's), never with plain tokenizers.
        """
        begin = self.tokenizer.bos_token
        return self.takes_images and begin is not None and not text.startswith(begin)

    def _bos(self) -> str:
        return self.tokenizer.bos_token or ""

    def _eos_ids(self) -> set[int]:
        return set() if self.tokenizer.eos_token_id is None else {self.tokenizer.eos_token_id}

    def _eos(self) -> str:
        if self.tokenizer.eos_token is None:
            raise ValueError(f"The tokenizer {self.tokenizer.name_or_path} has no eos token to end an answer with.")
        return self.tokenizer.eos_token
