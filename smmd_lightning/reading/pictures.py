"""Pictures that a person gives: files, folders, patterns, bytes; always upright RGB.

One real example::

    >>> find_pictures(["README.md"])
    Traceback (most recent call last):
    ...
    ValueError: README.md: no picture of a known kind (.bmp, .gif, .jpeg, .jpg, .png, .tif, .tiff, .webp).
"""

from __future__ import annotations

import glob
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

KINDS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""What is tried. Pillow knows more, but some start other programs or read other files."""

MOST_PIXELS = 64_000_000


def find_pictures(names: Sequence[str]) -> list[Path]:
    """Returns the files that names stand for, each once, those of a folder or pattern in order of their names.

    Args:
        names: Files, folders (their pictures, not those of folders inside), or patterns such as `photos/*.jpg`.

    Raises:
        ValueError: A name stands for no picture.
    """
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix.lower() in KINDS and file.is_file())
        elif path.exists():
            if path.suffix.lower() not in KINDS:
                raise ValueError(f"{name}: no picture of a known kind ({', '.join(KINDS)}).")
            files = [path]
        else:
            files = [Path(each) for each in sorted(glob.glob(name)) if Path(each).suffix.lower() in KINDS]
        if not files:
            raise ValueError(f"{name}: no picture is there. Give a file, a folder or a pattern ({', '.join(KINDS)}).")
        found |= dict.fromkeys(files)
    return list(found)


def open_picture(source: str | Path | bytes | Image) -> Image:
    """Returns a picture as the model takes it: upright as the camera says, transparency on white, RGB.

    Args:
        source: A file, its bytes, or a Pillow image.

    Raises:
        ValueError: It is no picture, or larger than `MOST_PIXELS`; names the file.
    """
    from PIL import Image, ImageOps

    name = "the picture" if isinstance(source, (bytes, Image.Image)) else str(source)
    try:
        if isinstance(source, Image.Image):
            opened = source
        else:
            opened = Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS)
        if opened.width * opened.height > MOST_PIXELS:
            raise ValueError(f"{opened.width}x{opened.height} pixels are above the limit of {MOST_PIXELS:,}")
        upright = ImageOps.exif_transpose(opened)
        if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
            over = upright.convert("RGBA")
            upright = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
        return upright.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read as a picture: {error}") from error
