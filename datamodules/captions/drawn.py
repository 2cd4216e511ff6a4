"""Scenes drawn on the fly, with questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from datamodules.captions.scene import KINDS, draw_scene, sample_scene
from datamodules.sources.dice import Dice
from datamodules.sources.origins import Drawn, DrawSample, Split
from datamodules.sources.prompts import check_prompts, pick_prompt
from smmd_lightning.types import NumericExample, SampleKey

PROMPTS = ("{question} Answer with a word or number.",)


@dataclass
class DrawnCaptions(Drawn):
    """Scenes of coloured shapes, numbers and words drawn on the fly.

    Attributes:
        image_size: Edge of the picture in pixels, at least 32.
        kinds: What is asked, equally likely: some of "colour", "count", "where", "number", "word".

    Raises:
        ValueError: A setting is out of range.
    """

    image_size: int = 112
    kinds: Sequence[str] = tuple(KINDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size < 32:
            raise ValueError(f"image_size must be at least 32, got {self.image_size}")
        if not self.kinds or set(self.kinds) - set(KINDS):
            raise ValueError(f"kinds must be some of {tuple(KINDS)}, got {tuple(self.kinds)!r}")

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws a scene and asks about it."""
        return partial(self._draw, prompts=check_prompts(prompts or PROMPTS, "question"))

    def _draw(self, rng: np.random.Generator, key: SampleKey, *, prompts: Sequence[str]) -> NumericExample:
        prompt = pick_prompt(prompts, rng)
        dice = Dice(rng)
        scene = sample_scene(dice, self.kinds)
        return NumericExample(
            id="",
            prompt=prompt.replace("{question}", scene.question),
            answer=scene.answer,
            images=(draw_scene(scene, self.image_size, dice),),
            meta={"task": "caption", "kind": scene.kind},
        )
