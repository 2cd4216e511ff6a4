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
from torch import Tensor

from datamodules.pipeline.chat_frames import ChatFrames
from datamodules.pipeline.packing import pack_rows
from smmd_lightning.types import IGNORE_INDEX, Batch, NumericExample


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
        ValueError: `pack` with a processor of images, or a `fallback_template` without `{prompt}`.
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
        self.takes_images = hasattr(processor, "image_processor")
        if pack and self.takes_images:
            raise ValueError(
                f"pack=true is for text, but {self.tokenizer.name_or_path} reads images too, and positions of image "
                "tokens cannot be packed. Set pack to false."
            )
        self.pack = pack
        self._frames = ChatFrames(
            processor,
            system_prompt=system_prompt,
            template_options=template_options,
            fallback_template=fallback_template,
        )

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
        prompts, fulls = zip(*(self._frames.texts(example) for example in examples), strict=True)
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
        return self._frames.stop_ids

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
