"""Words as small masks, kept from one picture to the next. Pillow's own font, so no machine draws another one."""

from __future__ import annotations

import functools
import math

from PIL import Image, ImageDraw, ImageFont


@functools.lru_cache(maxsize=4096)
def glyphs(text: str, height: int, bold: bool) -> Image.Image:
    """Returns the mask (mode L) of a word, cropped to its ink.

    Args:
        text: The word.
        height: Size of the font's em in pixels.
        bold: Whether strokes are thicker by a twentieth of the height.
    """
    if text.endswith("³") and len(text) > 1:  # which the font lacks
        base, power = glyphs(text[:-1], height, bold), glyphs("3", round(height * 0.6), bold)
        rise = power.height // 2
        mask = Image.new("L", (base.width + power.width + 1, base.height + rise))
        mask.paste(base, (0, rise))
        mask.paste(power, (base.width + 1, 0))
        return mask
    font = ImageFont.load_default(height)
    stroke = height / 40 if bold else 0
    left, top, right, bottom = font.getbbox(text, stroke_width=stroke)
    mask = Image.new("L", (max(1, math.ceil(right - left)), max(1, math.ceil(bottom - top))))
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=font, stroke_width=stroke)
    return mask
