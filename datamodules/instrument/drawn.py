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
from functools import partial
from typing import Any, Literal

import numpy as np
from PIL import Image

from datamodules.clock.face import draw_face
from datamodules.clock.face_sampling import sample_face
from datamodules.instrument.canvas import Canvas
from datamodules.instrument.catalog import CLOCK, FAMILIES, check_families
from datamodules.instrument.look import STYLES, Camera, clutter, sample_camera, sample_look
from datamodules.instrument.picture import Drawing
from datamodules.instrument.scale_reading import plain
from datamodules.sources.dice import Dice
from datamodules.sources.origins import Drawn, DrawSample, Split
from datamodules.sources.prompts import pick_prompt
from smmd_lightning.types import NumericExample, SampleKey

WITH_UNIT = ("What does this {instrument} show? Answer with the number and its unit.",)
WITHOUT_UNIT = ("What does this {instrument} show? Answer with a single number.",)
CLOCK_PROMPT = "What time does this clock show? Answer as HH:MM."


@dataclass
class DrawnInstruments(Drawn):
    """Instruments drawn on the fly.

    Attributes:
        families: Which, see `datamodules.instrument.catalog`; None for all.
        style: `plain` (black on white, nothing in the way) or `varied` (all there is).
        image_size: Side of the picture in pixels.
        with_unit: Whether answers name the unit.
    """

    families: Sequence[str] | None = None
    style: Literal["plain", "varied"] = "varied"
    image_size: int = 224
    with_unit: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size < 32:
            raise ValueError(f"image_size must be at least 32, got {self.image_size}")
        if self.style not in STYLES:
            raise ValueError(f"style must be one of {STYLES}, got {self.style!r}")
        check_families(self.families)

    def drawing(self, split: Split, *, seed: int, prompts: Sequence[str] | None = None, **task: Any) -> DrawSample:
        """Returns what draws an instrument; outside training all families come up equally often."""
        return partial(
            self._draw,
            prompts=tuple(prompts or (WITH_UNIT if self.with_unit else WITHOUT_UNIT)),
            clock_prompts=tuple(prompts or (CLOCK_PROMPT,)),
            any_order=split == "train",
        )

    def _draw(
        self,
        rng: np.random.Generator,
        key: SampleKey,
        *,
        prompts: Sequence[str],
        clock_prompts: Sequence[str],
        any_order: bool,
    ) -> NumericExample:
        families = check_families(self.families)
        family = families[int(rng.integers(len(families))) if any_order else key.index % len(families)]
        if family == CLOCK:
            return self._clock(rng, clock_prompts)
        dice = Dice(rng)
        look = sample_look(dice, self.style)
        canvas = Canvas(self.image_size, look.wall)
        clutter(canvas, dice, look)
        drawing = FAMILIES[family](canvas, dice, look)
        camera = sample_camera(dice, self.style)
        return NumericExample(
            id="",
            prompt=_question(drawing, prompts, rng),
            answer=drawing.reading.text(unit=self.with_unit),
            images=(camera.take(canvas.finish(), look.wall),),
            meta={"task": "instrument", "kind": family, **_facts(drawing, camera, self.with_unit)},
        )

    def _clock(self, rng: np.random.Generator, prompts: Sequence[str]) -> NumericExample:
        hour, minute = divmod(int(rng.integers(720)), 60)
        spec = sample_face(rng, self.style)
        image: Image.Image = draw_face(spec, hour, minute, size=self.image_size)
        return NumericExample(
            id="",
            prompt=pick_prompt(prompts, rng).replace("{instrument}", "clock").replace("{unit}", "HH:MM"),
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


def _question(drawing: Drawing, prompts: Sequence[str], rng: np.random.Generator) -> str:
    template, unit = pick_prompt(prompts, rng), drawing.reading.unit
    asked = template.replace("{instrument}", drawing.name).replace("{unit}", unit)
    # A picture with two scales has two right answers until the question says which.
    return f"{asked} Read the scale in {unit}." if drawing.ask_unit and "{unit}" not in template else asked


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
