"""Clocks drawn on the fly.

What is unusual: a drawing is a function of (seed, epoch, index), every training epoch has new drawings, and with
`unseen_times` the times of day of the three splits are disjoint, so that a test asks for times never trained.

One real example::

    source = DrawnClocks(style="plain", image_size=64).open("test")
    source.example(SampleKey(epoch=0, index=0)).answer                       # "02:47"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from datamodules.clock.face import draw_face
from datamodules.clock.face_sampling import sample_face
from datamodules.clock.face_spec import STYLES, FaceRanges
from datamodules.clock.times import AnswerFormat, clock_answer, default_prompts, split_times
from datamodules.sources.origins import Drawn, DrawSample, Fractions, Split
from datamodules.sources.prompts import pick_prompt
from datamodules.sources.splits import SPLITS, check_fractions
from smmd_lightning.types import NumericExample, SampleKey


@dataclass
class DrawnClocks(Drawn):
    """Clock faces drawn on the fly.

    Attributes:
        style: `plain` (clean round dials) or `varied` (all there is).
        ranges: What faces look like, instead of the style's ranges.
        image_size: Side of the picture in pixels.
        minute_step: Minutes between the times that occur: 5 for full five minutes only.
        unseen_times: Whether validation and test ask for times of day that training never shows.
        fractions: Shares of the times of day that train, val and test get, where `unseen_times`.

    Raises:
        ValueError: A setting is out of range.
    """

    style: Literal["plain", "varied"] = "varied"
    ranges: FaceRanges | None = None
    image_size: int = 224
    minute_step: int = 1
    unseen_times: bool = True
    fractions: Fractions = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size < 16:
            raise ValueError(f"image_size must be at least 16, got {self.image_size}")
        if self.style not in STYLES:
            raise ValueError(f"style must be one of {sorted(STYLES)}, got {self.style!r}")
        if self.minute_step < 1 or 60 % self.minute_step:
            raise ValueError(f"minute_step must divide 60, got {self.minute_step}")
        check_fractions(self.fractions)

    def drawing(
        self,
        split: Split,
        *,
        seed: int,
        answer_format: AnswerFormat = "HH:MM",
        prompts: Sequence[str] | None = None,
        **task: Any,
    ) -> DrawSample:
        """Returns what draws a clock; answers of `HH:MM:SS` put a second hand on every face."""
        ranges = self.ranges or STYLES[self.style]
        if answer_format == "HH:MM:SS":
            ranges = replace(ranges, second_hand=1.0)
        by_split = split_times(seed, self.fractions, self.minute_step)
        times = by_split[split] if self.unseen_times else [time for name in SPLITS for time in by_split[name]]
        if not times:
            raise ValueError(f"fractions {tuple(self.fractions)} leave no times of day for {split!r}; raise its share")
        return partial(
            self._draw,
            times=times,
            ranges=ranges,
            answer_format=answer_format,
            prompts=tuple(prompts or default_prompts(answer_format)),
            any_order=split == "train",  # elsewhere all times come up equally often
        )

    def _draw(
        self,
        rng: np.random.Generator,
        key: SampleKey,
        *,
        times: Sequence[int],
        ranges: FaceRanges,
        answer_format: AnswerFormat,
        prompts: Sequence[str],
        any_order: bool,
    ) -> NumericExample:
        place = int(rng.integers(len(times))) if any_order else key.index % len(times)
        hour, minute = divmod(times[place], 60)
        spec = sample_face(rng, ranges=ranges)
        second = int(rng.integers(60)) if spec.second_hand else 0
        image = draw_face(spec, hour, minute, second, size=self.image_size)
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng),
            answer=clock_answer(hour, minute, second, answer_format),
            images=(image,),
            meta={
                "task": "clock",
                "hour": hour or 12,
                "minute": minute,
                "second": second,
                "style": self.style if self.ranges is None else "custom",
                "shape": spec.shape,
                "numerals": spec.numerals.system,
                # Where the dial lies (x, y, radius in image sides; turn in degrees), to draw what was read over it.
                "dial": [round(place, 4) for place in (*spec.centre, spec.radius, spec.rotation)],
            },
        )
