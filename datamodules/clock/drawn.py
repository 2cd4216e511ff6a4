"""Clocks drawn on the fly.

What is unusual: a drawing is a function of (seed, epoch, index), training draws anew each epoch, and with
`unseen_times` the times of day of the three splits are disjoint, so that a test asks for times never trained.

One real example::

    source = SyntheticClocks(1000, "test", style="plain", image_size=64)
    source.example(SampleKey(epoch=0, index=0)).answer                       # "02:47"
"""

from __future__ import annotations

from collections.abc import Sequence

from datamodules.clock.face import draw_face
from datamodules.clock.face_sampling import sample_face
from datamodules.clock.face_spec import STYLES, FaceRanges
from datamodules.clock.times import AnswerFormat, clock_answer, default_prompts, split_times
from datamodules.sources.splits import SPLITS, check_split, pick_prompt, sample_rng
from smmd_lightning.types import NumericExample, SampleKey


class SyntheticClocks:
    """Drawn clocks.

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`.
        style: `plain` or `varied`.
        ranges: What faces look like, instead of the style's ranges.
        image_size: Side of the picture in pixels.
        seed: Seed of times and drawings.
        answer_format: `HH:MM` or `HH:MM:SS`; the latter draws a second hand on every face.
        minute_step: Only every so manieth minute of the hour occurs.
        unseen_times: Whether the splits' times of day are disjoint; otherwise every split has all times.
        fractions: Shares of the times that train, val and test get.
        prompts: Wordings of the question; one is chosen a sample.

    Raises:
        ValueError: A setting is out of range, or the split gets no times.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        style: str = "varied",
        ranges: FaceRanges | None = None,
        image_size: int = 224,
        seed: int = 0,
        answer_format: AnswerFormat = "HH:MM",
        minute_step: int = 1,
        unseen_times: bool = True,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        prompts: Sequence[str] | None = None,
    ) -> None:
        if size < 1 or image_size < 16 or seed < 0:
            raise ValueError(
                "size must be at least 1, image_size at least 16 and seed not negative, "
                f"got {size}, {image_size} and {seed}"
            )
        if style not in STYLES:
            raise ValueError(f"style must be one of {sorted(STYLES)}, got {style!r}")
        self.size, self.image_size, self.seed = size, image_size, seed
        self.split = check_split(split)
        self.style = style if ranges is None else "custom"
        self.ranges = ranges or STYLES[style]
        self.answer_format = answer_format
        self.prompts = tuple(prompts or default_prompts(answer_format))
        if answer_format == "HH:MM:SS":
            self.ranges = FaceRanges(**{**vars(self.ranges), "second_hand": 1.0})
        by_split = split_times(seed, fractions, minute_step)
        self.times = by_split[split] if unseen_times else [time for name in SPLITS for time in by_split[name]]
        if not self.times:
            raise ValueError(f"fractions {tuple(fractions)} leave no times of day for {split!r}; raise its share")

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample; outside training all times come up equally often."""
        rng = sample_rng(self.seed, self.split, key)
        training = self.split == "train"
        place = int(rng.integers(len(self.times))) if training else key.index % len(self.times)
        hour, minute = divmod(self.times[place], 60)
        spec = sample_face(rng, ranges=self.ranges)
        second = int(rng.integers(60)) if spec.second_hand else 0
        image = draw_face(spec, hour, minute, second, size=self.image_size)
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if training else f"{self.split}-{key.index}",
            prompt=pick_prompt(self.prompts, rng),
            answer=clock_answer(hour, minute, second, self.answer_format),
            images=(image,),
            meta={
                "task": "clock",
                "hour": hour or 12,
                "minute": minute,
                "second": second,
                "style": self.style,
                "shape": spec.shape,
                "numerals": spec.numerals.system,
                # Where the dial lies (x, y, radius in image sides; turn in degrees), to draw what was read over it.
                "dial": [round(place, 4) for place in (*spec.centre, spec.radius, spec.rotation)],
            },
        )
