"""A small gallery in the log while a run trains: worst, random and best answers of a validation.

Unusual: no picture travels with the batches. A sample is a function of its key, so the few that are shown are read or
drawn again. The answers are those of the first process; that is enough to look at.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lightning.pytorch import Callback, LightningModule, Trainer

from smmd_lightning.metrics import metrics_for
from smmd_lightning.metrics.registry import load
from smmd_lightning.report.picking import pick
from smmd_lightning.types import Batch, SampleKey

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)

MARGIN, LINE, LINES = 6, 15, 5
RIGHT, WRONG = (0, 158, 115), (213, 94, 0)  # Okabe and Ito's green and vermilion


class SampleGallery(Callback):
    """Logs `gallery` as an image after validations, to TensorBoard or any logger with `log_image`.

    Args:
        every_n_validations: After every n-th validation; 0 for never.
        count: How many of the worst, of random and of the best answers.
        size: Side of a picture in the gallery, in pixels.

    Raises:
        ValueError: A setting is out of its range.
    """

    def __init__(self, every_n_validations: int = 1, count: int = 4, size: int = 160) -> None:
        for name, value, least in (
            ("every_n_validations", every_n_validations, 0),
            ("count", count, 1),
            ("size", size, 32),
        ):
            if value < least:
                raise ValueError(f"gallery.{name} must be at least {least}, got {value}.")
        self.every_n_validations = every_n_validations
        self.count = count
        self.size = size
        self._validations = 0
        self._answers: list[tuple[dict[str, Any], SampleKey | None]] = []

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forgets the answers of the last validation."""
        self._answers = []

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keeps the answers of a batch that was generated."""
        if self._due(trainer) and isinstance(outputs, list):
            self._answers += zip(outputs, counted_keys(batch, len(outputs)), strict=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Logs the gallery; whatever goes wrong with it is a warning and does not end the run."""
        due = self._due(trainer)
        self._validations += not trainer.sanity_checking
        if not due or not self._answers:
            return
        try:
            sheet = self._sheet(getattr(trainer, "datamodule", None))
            for logger in trainer.loggers:
                _log_image(logger, sheet, trainer.global_step)
        except Exception as error:  # pictures are a help, not worth a run
            log.warning("no gallery at step %d (%s: %s)", trainer.global_step, type(error).__name__, error)
        self._answers = []

    def _due(self, trainer: Trainer) -> bool:
        if not self.every_n_validations or trainer.sanity_checking or not trainer.is_global_zero:
            return False
        return bool(trainer.loggers) and (self._validations + 1) % self.every_n_validations == 0

    def _sheet(self, datamodule: Any) -> Image:
        rows = [row for row, _ in self._answers]
        groups = [
            (name, [tile(rows[n], sample_picture(datamodule, "val", self._answers[n][1]), self.size) for n in numbers])
            for name, numbers in pick(rows, self.count, seed=self._validations).items()
        ]
        return sheet([(name, tiles) for name, tiles in groups if tiles])


def counted_keys(batch: Batch, count: int) -> list[SampleKey | None]:
    """Keys of the rows of a batch that count; None for each of them where a data module does not tell keys."""
    keys: list[SampleKey | None] = [key for key, counted in zip(batch.keys, batch.counted, strict=False) if counted]
    return keys if len(keys) == count else [None] * count


def sample_picture(datamodule: Any, split: str, key: SampleKey | None) -> Image | None:
    """Reads or draws the first picture of a sample again; None where it has none or its data module cannot tell."""
    if key is None or not hasattr(datamodule, "example"):
        return None
    images = datamodule.example(split, key).images
    return images[0] if images else None


def tile(row: dict[str, Any], picture: Image | None, size: int) -> Image:
    """One answer: the picture, with the answer drawn over it where its task can, above truth, answer and error.

    Args:
        row: A row as the prediction file has it.
        picture: The sample's picture.
        size: Side of the picture in pixels; the tile is that wide.
    """
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    top = 0
    canvas = Image.new("RGB", (size, size + LINES * LINE + MARGIN), "white")
    overlay = metrics_for(str(row.get("task"))).overlay
    if overlay:
        picture = load(overlay)(row, picture, size)
    if picture is not None:
        canvas.paste(ImageOps.pad(picture.convert("RGB"), (size, size), color="white"), (0, 0))
        top = size
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=11)
    pen.rectangle((0, top + 1, size, top + 4), fill=RIGHT if row.get("correct") else WRONG)
    error, unit = row.get("error"), row.get("error_unit")
    off = "" if error is None else f"{100 * error:.3g} % off" if unit == "relative" else f"{error:.4g} off"
    texts = [
        f"truth {row.get('truth')}",
        f"read {row.get('parsed') if row.get('parsed') is not None else '-'}  {off}",
        f"raw {row.get('raw')!r}",
        str(row.get("prompt") or ""),
    ]
    for place, text in enumerate(texts):
        # Latin-1 is what every build of Pillow can draw.
        shown = text[:80].encode("latin-1", "replace").decode("latin-1").replace("\n", " ")
        while shown and pen.textlength(shown, font) > size:
            shown = shown[:-1]
        pen.text((0, top + 8 + place * LINE), shown, fill="black", font=font)
    return canvas.crop((0, 0, size, top + LINES * LINE + MARGIN))


def sheet(groups: Sequence[tuple[str, Sequence[Image]]]) -> Image:
    """One line of tiles per group, each under its name."""
    from PIL import Image, ImageDraw, ImageFont

    width = max(sum(tile.width + MARGIN for tile in tiles) for _, tiles in groups) + MARGIN
    heights = [max(tile.height for tile in tiles) + 2 * LINE for _, tiles in groups]
    canvas = Image.new("RGB", (width, sum(heights)), "white")
    pen, font, top = ImageDraw.Draw(canvas), ImageFont.load_default(size=13), 0
    for (name, tiles), height in zip(groups, heights, strict=True):
        pen.text((MARGIN, top + 3), name, fill="black", font=font)
        for place, tile in enumerate(tiles):
            canvas.paste(tile, (MARGIN + place * (tile.width + MARGIN), top + int(1.5 * LINE)))
        top += height
    return canvas


def _log_image(logger: Any, image: Image, step: int) -> None:
    import numpy as np

    if hasattr(logger.experiment, "add_image"):
        logger.experiment.add_image("gallery", np.asarray(image), step, dataformats="HWC")
    elif hasattr(logger, "log_image"):
        logger.log_image(key="gallery", images=[image], step=step)
