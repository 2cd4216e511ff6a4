"""Scenes drawn on the fly, with questions about them."""

from __future__ import annotations

from collections.abc import Sequence

from datamodules.captions.scene import KINDS, draw_scene, sample_scene
from datamodules.sources.dice import Dice
from datamodules.sources.splits import check_split, pick_prompt, sample_rng
from smmd_lightning.types import NumericExample, SampleKey

PROMPTS = ("{question} Answer with a word or number.",)


class SyntheticCaptions:
    """Drawn scenes with short questions.

    Args:
        size: Samples of one pass.
        split: `train`, `val` or `test`; outside `train` the samples are the same each epoch.
        image_size: Edge of the picture in pixels, at least 32.
        seed: Seed of scenes and questions.
        kinds: What is asked, equally likely: some of "colour", "count", "where", "number", "word".
        prompts: Wordings around the question, with `{question}` in them; one is chosen per sample.

    Raises:
        ValueError: A setting is out of range.
    """

    def __init__(
        self,
        size: int,
        split: str,
        *,
        image_size: int = 112,
        seed: int = 0,
        kinds: Sequence[str] = tuple(KINDS),
        prompts: Sequence[str] | None = None,
    ) -> None:
        if size < 1 or seed < 0 or image_size < 32:
            raise ValueError(
                "size must be at least 1, seed not negative and image_size at least 32, got "
                f"{size}, {seed} and {image_size}"
            )
        if not kinds or set(kinds) - set(KINDS):
            raise ValueError(f"kinds must be some of {tuple(KINDS)}, got {tuple(kinds)!r}")
        for prompt in prompts or ():
            if "{question}" not in prompt:
                raise ValueError(f"each of prompts needs '{{question}}' where the question goes, got {prompt!r}")
        self.size, self.image_size, self.seed = size, image_size, seed
        self.split, self.kinds = check_split(split), tuple(kinds)
        self.prompts = tuple(prompts or PROMPTS)

    def __len__(self) -> int:
        """Samples of one pass."""
        return self.size

    def example(self, key: SampleKey) -> NumericExample:
        """Draws the sample."""
        rng = sample_rng(self.seed, self.split, key)
        prompt = pick_prompt(self.prompts, rng)
        dice = Dice(rng)
        scene = sample_scene(dice, self.kinds)
        return NumericExample(
            id=f"{self.split}-{key.epoch}-{key.index}" if self.split == "train" else f"{self.split}-{key.index}",
            prompt=prompt.replace("{question}", scene.question),
            answer=scene.answer,
            images=(draw_scene(scene, self.image_size, dice),),
            meta={"task": "caption", "kind": scene.kind},
        )
