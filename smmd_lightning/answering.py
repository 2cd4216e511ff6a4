"""Answers of one batch: generated, judged, and described as rows of the prediction file.

Unusual: the greedy answer is always made. Where likely answers are asked for, each question gets a law over whole
answers beside it (`metrics.laws`); `decode` says which answer of the law is judged instead of the greedy one.

Shape legend: B rows, L generated tokens, W likely answers of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from smmd_lightning.backbones.base import Backbone
from smmd_lightning.backbones.generation import cut_off, end_ids
from smmd_lightning.metrics import MetricsByTask
from smmd_lightning.metrics.beliefs import NumericRecorder
from smmd_lightning.metrics.laws import Law
from smmd_lightning.types import Batch
from smmd_lightning.vocabulary import NumericVocabulary

Decode = Literal["greedy", "median", "mean"]


@dataclass(frozen=True)
class Answering:
    """How answers are made.

    Attributes:
        max_new_tokens: Most tokens of an answer.
        decode: Which answer is judged: the greedy one, or the median or mean of the law over whole answers.
        likely_answers: W, how many of the likeliest answers are found for the law; 0 for no law.

    Raises:
        ValueError: A setting is out of its range.
    """

    max_new_tokens: int = 32
    decode: Decode = "greedy"
    likely_answers: int = 0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1, got {self.max_new_tokens}.")
        if self.likely_answers < 0 or self.likely_answers == 1:
            raise ValueError(f"likely_answers must be 0 or at least 2, got {self.likely_answers}.")
        if self.decode not in ("greedy", "median", "mean"):
            raise ValueError(f"decode must be greedy, median or mean, got {self.decode!r}.")
        if self.decode != "greedy" and not self.likely_answers:
            raise ValueError(f"decode: {self.decode} is taken of the likely answers: set likely_answers, to 16 or so.")


def answer(
    backbone: Backbone,
    tokenizer: Any,
    batch: Batch,
    metrics: MetricsByTask,
    how: Answering,
    recorded: NumericVocabulary | None = None,
    with_law: bool = True,
) -> list[dict[str, Any]]:
    """Generates answers, adds them to the metrics, and returns one plain row per sample that counts.

    Args:
        backbone: The model.
        tokenizer: Its tokenizer.
        batch: Prompts and their examples.
        metrics: Where the answers are added.
        how: How answers are made.
        recorded: Numeric tokens whose probabilities the rows tell; None for none.
        with_law: Whether laws are made where `how` asks for them; a `decode` other than greedy always makes them.
    """
    if not batch.examples:  # no sample of the split can be used, on any process
        return []
    options: dict[str, Any] = {"eos_token_id": batch.stop_ids} if batch.stop_ids else {}
    recorder = None if recorded is None else NumericRecorder(recorded)
    processors = {} if recorder is None else {"logits_processor": [recorder]}
    ids_BL = backbone.generate(batch.inputs, max_new_tokens=how.max_new_tokens, **options, **processors)
    texts = [text.strip() for text in tokenizer.batch_decode(ids_BL, skip_special_tokens=True)]
    ends = end_ids(batch.stop_ids, backbone.causal.generation_config.eos_token_id)
    cuts = cut_off(ids_BL, how.max_new_tokens, ends)
    counted = [row for row, counts in enumerate(batch.counted) if counts]
    laws: list[Law | None] | None = None
    if how.likely_answers and (with_law or how.decode != "greedy"):
        laws = _laws(backbone, tokenizer, batch, metrics, how, options)
        metrics.update_laws(
            [laws[row] for row in counted], [batch.examples[row] for row in counted], [texts[row] for row in counted]
        )
    chosen = (
        texts
        if laws is None or how.decode == "greedy"
        else [text if law is None else getattr(law, how.decode)() for text, law in zip(texts, laws, strict=True)]
    )
    metrics.update(
        [chosen[row] for row in counted], [batch.examples[row] for row in counted], [cuts[row] for row in counted]
    )
    believed = None if recorder is None else recorder.describe(ids_BL)
    rows = []
    for row in counted:
        found = metrics.row(chosen[row], batch.examples[row], cuts[row])
        if how.decode != "greedy":
            found["greedy"] = texts[row]
        law = None if laws is None else laws[row]
        if law is not None:
            found["law"] = law.described()
        if believed is not None:
            found["distributions"] = believed[row]
        rows.append(found)
    return rows


def _laws(
    backbone: Backbone, tokenizer: Any, batch: Batch, metrics: MetricsByTask, how: Answering, options: dict[str, Any]
) -> list[Law | None]:
    ids_BWL, log_probability_BW = backbone.likely(
        batch.inputs, max_new_tokens=how.max_new_tokens, most=how.likely_answers, **options
    )
    return [
        metrics.law(example, _texts(tokenizer, ids_WL), log_probability_W.double().exp().tolist())
        for example, ids_WL, log_probability_W in zip(batch.examples, ids_BWL, log_probability_BW, strict=True)
    ]


def _texts(tokenizer: Any, ids_WL: Tensor) -> list[str]:
    return [text.strip() for text in tokenizer.batch_decode(ids_WL, skip_special_tokens=True)]
