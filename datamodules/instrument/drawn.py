"""Instruments drawn on the fly.

Unusual: a drawing is a function of (seed, epoch, index), as with clocks, and its facts hold all that a metric or a
report needs: the interval that counts as right (half of the smallest tick), the unit, the scale, and where the scale
lies in the picture. Clocks among the instruments keep their own task, so their answers are judged as times.

One real example::

    DrawnInstruments(families=("pressure_gauge",)).open("test").example(SampleKey(0, 0)).answer         # "62.4 psi"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image

from datamodules.clock.face import draw_face
from datamodules.clock.face_sampling import sample_face
from datamodules.instrument.canvas import Canvas
from datamodules.instrument.drawing import Drawing
from datamodules.instrument.families import CLOCK, FAMILIES, check_families
from datamodules.instrument.look import STYLES, Camera, clutter, sample_camera, sample_look
from datamodules.instrument.reading import plain
from datamodules.sources.dice import Dice
from datamodules.sources.origins import Drawn, Split
from datamodules.sources.splits import check_split, pick_prompt, sample_rng
from smmd_lightning.types import NumericExample, SampleKey, Source

WITH_UNIT = ("What does this {instrument} show? Answer with the number and its unit.",)
WITHOUT_UNIT = ("What does this {instrument} show? Answer with a single number.",)
CLOCK_PROMPT = "What time does this clock show? Answer as HH:MM."


@dataclass
class DrawnInstruments(Drawn):
    """Instruments drawn on the fly.

    Attributes:
        families: Which, see `datamodules.instrument.families`; None for all.
        style: `plain` (black on white, nothing in the way) or `varied` (all there is).
        image_size: Side of the picture in pixels.
        with_unit: Whether answers name the unit.
    """

    families: Sequence[str] | None = None
    style: Literal["plain", "varied"] = "varied"
    image_size: int = 224
    with_unit: bool = True

    def open(self, split: Split, **common: Any) -> Source:
        """Returns the drawings of a split.

        Args:
            split: Which.
            **common: `seed` and `prompts` of the data module.

        Raises:
            ValueError: A setting is out of range.
        """
        return _Drawings(self, split, **common)


class _Drawings:
    """The drawings of one split."""

    def __init__(
        self, settings: DrawnInstruments, split: str, seed: int = 0, prompts: Sequence[str] | None = None
    ) -> None:
        self.size = int(getattr(settings, f"{check_split(split)}_size"))
        if self.size < 1 or settings.image_size < 32 or seed < 0:
            raise ValueError(
                f"{split}_size must be at least 1, image_size at least 32 and seed not negative, "
                f"got {self.size}, {settings.image_size} and {seed}"
            )
        if settings.style not in STYLES:
            raise ValueError(f"style must be one of {STYLES}, got {settings.style!r}")
        self.families = check_families(settings.families)
        self.settings, self.split, self.seed = settings, split, seed
        self.prompts = tuple(prompts or (WITH_UNIT if settings.with_unit else WITHOUT_UNIT))
        self.clock_prompts = tuple(prompts or (CLOCK_PROMPT,))

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample; outside training all families come up equally often."""
        rng = sample_rng(self.seed, self.split, key)
        training = self.split == "train"
        place = int(rng.integers(len(self.families))) if training else key.index % len(self.families)
        name = f"{self.split}-{key.epoch}-{key.index}" if training else f"{self.split}-{key.index}"
        family = self.families[place]
        if family == CLOCK:
            return self._clock(rng, name)
        style, size = self.settings.style, self.settings.image_size
        dice = Dice(rng)
        look = sample_look(dice, style)
        canvas = Canvas(size, look.wall)
        clutter(canvas, dice, look)
        drawing = FAMILIES[family](canvas, dice, look)
        camera = sample_camera(dice, style)
        return NumericExample(
            id=name,
            prompt=self._question(drawing, rng),
            answer=drawing.reading.text(unit=self.settings.with_unit),
            images=(camera.take(canvas.finish(), look.wall),),
            meta={"task": "instrument", "kind": family, **_facts(drawing, camera, self.settings.with_unit)},
        )

    def _question(self, drawing: Drawing, rng: np.random.Generator) -> str:
        template, unit = pick_prompt(self.prompts, rng), drawing.reading.unit
        asked = template.replace("{instrument}", drawing.name).replace("{unit}", unit)
        # A picture with two scales has two right answers until the question says which.
        return f"{asked} Read the scale in {unit}." if drawing.ask_unit and "{unit}" not in template else asked

    def _clock(self, rng: np.random.Generator, name: str) -> NumericExample:
        hour, minute = divmod(int(rng.integers(720)), 60)
        spec = sample_face(rng, self.settings.style)
        image: Image.Image = draw_face(spec, hour, minute, size=self.settings.image_size)
        return NumericExample(
            id=name,
            prompt=pick_prompt(self.clock_prompts, rng).replace("{instrument}", "clock").replace("{unit}", "HH:MM"),
            answer=f"{hour or 12:02d}:{minute:02d}",
            images=(image,),
            meta={
                "task": "clock",
                "kind": CLOCK,
                "hour": hour or 12,
                "minute": minute,
                "dial": [round(place, 4) for place in (*spec.centre, spec.radius, spec.rotation)],
            },
        )


def _facts(drawing: Drawing, camera: Camera, unit_asked: bool) -> dict[str, Any]:
    """What metrics and reports need to know, as plain values; numbers are text, so none is rounded on the way."""
    reading = drawing.reading
    facts: dict[str, Any] = {
        "value": plain(reading.value),
        "unit": reading.unit,
        "unit_asked": unit_asked,
        "tick": plain(reading.tick),
        "interval": [plain(end) for end in reading.interval],
        "scale": [plain(reading.low), plain(reading.high)],
    }
    if reading.period is not None:
        facts["period"] = plain(reading.period)
    if drawing.scale:
        facts["scale_points"] = [[round(x, 4) for x in camera.seen(place)] for place in drawing.scale]
    if drawing.pivot is not None:
        facts["pivot"] = [round(x, 4) for x in camera.seen(drawing.pivot)]
    return facts
