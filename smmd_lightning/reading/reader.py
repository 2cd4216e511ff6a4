"""A trained model that answers one question at a time.

Unusual: it asks as training asked. A checkpoint and an exported folder keep the question, the system message and the
image options of training, and all of them are used unless the caller says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from smmd_lightning.backbones import LanguageBackbone, VisionLanguageBackbone
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.checkpoints.sharded import META
from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.beliefs import NumericRecorder
from smmd_lightning.module import SMMDModule
from smmd_lightning.reading.pictures import open_picture
from smmd_lightning.reading.question import model_inputs, question_of
from smmd_lightning.reading.values import value_and_unit, value_interval
from smmd_lightning.vocabulary import NumericVocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

SETTINGS = "smmd_lightning.json"
"""What an exported folder says about its training."""


@dataclass(frozen=True)
class Reading:
    """One answer.

    Attributes:
        value: The number in plain digits, or the time as HH:MM; None where the answer holds none.
        unit: The unit behind it; empty for none.
        interval: The range that holds 90 % of the probability that the model gave to values; None without a value.
        text: What the model wrote.
        answers: Whole answers with their probabilities, the likeliest first.
        question: What was asked.
        task: The task it belongs to.
        picture: Name of the picture's file; empty for none.
        distributions: What the model believed of each number token, see `NumericRecorder`.
    """

    value: str | None
    unit: str
    interval: tuple[str, str] | None
    text: str
    answers: list[tuple[str, float]]
    question: str
    task: str
    picture: str = ""
    distributions: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        """One line, "4.08 bar (3.9 to 4.2)"."""
        if self.value is None:
            return f"nothing read: {self.text!r}"
        shown = f"{self.value} {self.unit}".strip()
        return f"{shown} ({self.interval[0]} to {self.interval[1]})" if self.interval else shown

    def plain(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return asdict(self)


class Reader:
    """Reads pictures, or answers questions, with a trained model.

    Args:
        model: A checkpoint's file or folder, an exported folder, or any model that a backbone takes.
        device: Where to compute. None: the first GPU, else the processor.
        max_new_tokens: Most tokens of an answer. None: as in training.
        likely_answers: How many of the likeliest whole answers are looked for, with their probabilities; at least 2.

    Raises:
        ValueError: There is no such model, or it is an adapter alone.
    """

    def __init__(
        self,
        model: str | Path,
        device: str | None = None,
        max_new_tokens: int | None = None,
        likely_answers: int = 16,
    ) -> None:
        if likely_answers < 2:
            raise ValueError(f"likely_answers must be at least 2, got {likely_answers}.")
        self.likely_answers = likely_answers
        self.module = load_reader(model)
        self.asking: dict[str, Any] = dict(self.module.asking or {})
        self.max_new_tokens = max_new_tokens or self.module.max_new_tokens
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.module.to(self.device).eval()
        backbone = self.module.backbone
        self.processor = load_processor(
            backbone.path,
            revision=backbone.revision,
            trust_remote_code=backbone.trust_remote_code,
            options=self.asking.get("image_options"),
        )
        self.tokenizer = getattr(self.processor, "tokenizer", self.processor)
        self.numbers = self.module.numbers or NumericVocabulary.from_tokenizer(
            self.tokenizer, **asdict(self.module.vocabulary)
        )

    @property
    def sees(self) -> bool:
        """Whether the model takes pictures."""
        return hasattr(self.processor, "image_processor")

    def read(
        self,
        picture: str | Path | bytes | Image | None = None,
        question: str | None = None,
        task: str | None = None,
    ) -> Reading:
        """Answers one question.

        Args:
            picture: A file, its bytes, or a Pillow image; None for a question of text.
            question: What to ask. None: what training asked.
            task: Which of several tasks of training; None: the only one.

        Raises:
            ValueError: The picture cannot be read, the model takes none, or it is not known what to ask.
        """
        asked, task = question_of(self.asking, question, task)
        pictures = [] if picture is None else [open_picture(picture)]
        if self.sees and not pictures:
            raise ValueError(f"{self.module.backbone.path} reads pictures; give one.")
        inputs = {
            name: value.to(self.device)
            for name, value in model_inputs(self.processor, self.asking, asked, pictures).items()
        }
        recorder = NumericRecorder(self.numbers)
        ends = self.asking.get("stop_ids")
        options: dict[str, Any] = {"eos_token_id": ends} if ends else {}
        ids = self.module.backbone.generate(inputs, self.max_new_tokens, logits_processor=[recorder], **options)
        text = self.tokenizer.batch_decode(ids, skip_special_tokens=True)[0].strip()
        beliefs = recorder.describe(ids)[0]
        answers = self._likely(inputs, text, options)
        times = metrics_for(task).reads == "time"
        value, unit = value_and_unit(text, times)
        return Reading(
            value=value,
            unit=unit,
            interval=None if value is None else value_interval(text, answers, times),
            text=text,
            answers=answers[:MOST_ANSWERS],
            question=asked,
            task=task,
            picture=str(picture) if isinstance(picture, (str, Path)) else "",
            distributions=beliefs,
        )

    def _likely(self, inputs: dict[str, Tensor], text: str, options: dict[str, Any]) -> list[tuple[str, float]]:
        """Whole answers with their probabilities, the likeliest first; the greedy one is always among them."""
        ids_BWL, log_probability_BW = self.module.backbone.likely(
            inputs, self.max_new_tokens, self.likely_answers, **options
        )
        found = {text: 0.0}
        texts = self.tokenizer.batch_decode(ids_BWL[0], skip_special_tokens=True)
        for other, mass in zip(texts, log_probability_BW[0].double().exp().tolist(), strict=True):
            found[other.strip()] = found.get(other.strip(), 0.0) + mass
        return sorted(
            ((answer, round(mass, 6)) for answer, mass in found.items()), key=lambda pair: (-pair[1], pair[0])
        )

    def read_many(
        self, pictures: Iterable[str | Path], question: str | None = None, task: str | None = None
    ) -> Iterator[Reading]:
        """Answers the same question about each picture, in order, one after the other; arguments as in `read`."""
        for picture in pictures:
            yield self.read(picture, question, task)


MOST_ANSWERS = 20
"""Whole answers that a reading keeps."""


def load_reader(model: str | Path) -> SMMDModule:
    """Returns the module of a checkpoint, of an exported folder, or around any other model.

    Raises:
        ValueError: The folder holds an adapter alone, or the checkpoint is incomplete.
    """
    path = Path(model)
    if path.is_file() or (path / META).exists():
        return SMMDModule.load_from_checkpoint(path, map_location="cpu")
    if (path / "adapter_config.json").exists():
        raise ValueError(
            f"{path} holds an adapter alone. Give the checkpoint it was made of, or export without --adapter."
        )
    if path.suffix == ".ckpt" or (str(model).startswith((".", "/", "~")) and not path.exists()):
        raise ValueError(f"There is no model at {path}. Give a checkpoint or the folder of an exported model.")
    kept = json.loads((path / SETTINGS).read_text("utf-8")) if (path / SETTINGS).is_file() else {}
    sees = hasattr(load_processor(str(model)), "image_processor")
    backbone = VisionLanguageBackbone(str(model)) if sees else LanguageBackbone(str(model))
    module = SMMDModule(backbone, max_new_tokens=int(kept.get("max_new_tokens", 32)))
    module.configure_model()
    module.asking = kept.get("asking")
    return module
