"""Any picture's colours as RGB, the way they would be seen on white paper.

Unusual: transparency is laid on white (Pillow alone would show whatever colour hides under it); 16-bit grey is scaled
(Pillow alone would clip it to white).
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

BRIGHTEST = 16.0
"""Floating-point grey from 0 to more than 1 and at most this is light beyond white; above it counts from 0 to 255."""


def to_rgb(image: Image.Image) -> Image.Image:
    """Colours as they would be seen on white paper.

    Args:
        image: Any mode that Pillow decodes files to.

    Returns:
        An RGB image of the same size; the image itself where it is one without transparency.

    Raises:
        ValueError: A floating-point image holds NaN or infinity, or Pillow cannot convert the mode.
    """
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith(("I", "F")):
        return _grey_from_deep(image)
    if image.mode == "CMYK":
        return _rgb_from_cmyk(image)
    if image.has_transparency_data or image.mode in ("La", "RGBa"):
        layer = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, layer).convert("RGB")
    return image.convert("RGB")


def _grey_from_deep(image: Image.Image) -> Image.Image:
    """Brings 16-bit, 32-bit and floating-point grey to 8 bits by the range that its format means."""
    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError("the pixels hold NaN or infinity")
    low, high = float(values.min()), float(values.max())
    if image.mode.startswith("I;16") or (image.mode == "I" and low >= 0 and 255 < high <= 65535):
        grey = values / 257.0
    elif image.mode == "F" and low >= 0 and high <= 1:
        grey = values * 255.0
    elif low >= 0 and high <= 255 and (image.mode != "F" or high > BRIGHTEST or (values == np.rint(values)).all()):
        grey = values
    elif high == low:
        grey = np.clip(values, 0.0, 255.0)
    else:  # no format says what these mean: the range is stretched
        grey = (values - low) * (255.0 / (high - low))
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey = np.where(values == transparent, 255.0, grey)
    return Image.fromarray(np.rint(grey).astype(np.uint8)).convert("RGB")


def _rgb_from_cmyk(image: Image.Image) -> Image.Image:
    """Uses the colour profile inside the file where there is a usable one, else the plain ink formula."""
    profile = image.info.get("icc_profile")
    if profile:
        from PIL import ImageCms

        try:
            inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            return ImageCms.profileToProfile(image, inks, ImageCms.createProfile("sRGB"), outputMode="RGB") or image
        except (ImageCms.PyCMSError, OSError):  # a profile for another mode, or a broken one, says nothing
            pass
    return image.convert("RGB")
