"""Model inputs of one question, put as training put it.

Unusual: what a checkpoint or an exported folder keeps under `asking` is followed to the letter (system message,
template options, image options), since a model answers badly when it is asked in another way than in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image


def model_inputs(
    processor: Any, asking: Mapping[str, Any], question: str, pictures: Sequence[Image]
) -> dict[str, Tensor]:
    """Returns the inputs of one row, `input_ids` (1, T) among them.

    Args:
        processor: The model's processor or tokenizer.
        asking: How training asked, see `NumericDataModule.asking`; may be empty.
        question: The question.
        pictures: Upright RGB pictures that stand before it.

    Raises:
        ValueError: Pictures for a model that reads text only.
    """
    sees = hasattr(processor, "image_processor")
    tokenizer = getattr(processor, "tokenizer", processor)
    if pictures and not sees:
        raise ValueError(f"{tokenizer.name_or_path} reads text only; give no picture, or a model that sees.")
    if getattr(processor, "chat_template", None) is None:
        text = (tokenizer.bos_token or "") + asking.get("fallback_template", "Question: {prompt}\nAnswer:").replace(
            "{prompt}", question
        )
        return dict(tokenizer(text, return_tensors="pt", add_special_tokens=False))
    chat = []
    if (system := asking.get("system_prompt")) is not None:
        chat.append({"role": "system", "content": [{"type": "text", "text": system}] if sees else system})
    shown: list[dict[str, Any]] = [{"type": "image", "image": picture} for picture in pictures]
    content: Any = [*shown, {"type": "text", "text": question}] if sees else question
    chat.append({"role": "user", "content": content})
    options = dict(asking.get("template_options") or {})
    return dict(
        processor.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt", **options
        )
    )


def question_of(asking: Mapping[str, Any], question: str | None, task: str | None) -> tuple[str, str]:
    """Returns the question to ask and the task it belongs to.

    Args:
        asking: How training asked.
        question: A question of the caller's; None: the one of training.
        task: Which of training's tasks; None: the only one, or "number" where there is none.

    Raises:
        ValueError: Training's question is not known or not clear, or it had no such task.

    >>> question_of({"prompts": {"clock": "What time is it?"}}, None, None)
    ('What time is it?', 'clock')
    """
    prompts: dict[str, str] = dict(asking.get("prompts") or {})
    if task is not None and prompts and task not in prompts:
        raise ValueError(f"task must be one of {', '.join(prompts)}, got {task!r}.")
    if task is None and len(prompts) == 1:
        task = next(iter(prompts))
    if question is not None:
        return question, task or "number"
    if task is None or task not in prompts:
        why = (
            f"this model knows several tasks ({', '.join(prompts)}); give --task, or --question"
            if prompts
            else ("the model does not say how it was asked in training; give --question")
        )
        raise ValueError(f"No question: {why}.")
    return prompts[task], task
