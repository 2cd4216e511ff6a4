"""The one image loader of all data modules: whatever a data set holds becomes an upright RGB Pillow image.

Unusual: the size is judged from the file's header, before a pixel is decoded; a file that cannot be used raises
`BadSample`, which data modules count and skip, while a name that leaves the data folder raises a plain `ValueError`,
which stops the run.

One real example, a chart as the ChartQA data set stores it, relative to its folder::

    load_image("two_col_2139.png", root=Path("train/png"))   # <PIL.Image.Image mode=RGB size=800x557>
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from PIL import Image, ImageOps

from datamodules.sources.colours import to_rgb
from smmd_lightning.types import BadSample

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO")
"""What is tried. Pillow knows more, but some start other programs (EPS) or read other files."""


@dataclass(frozen=True)
class ImageLimits:
    """What an image may be at most.

    Attributes:
        max_pixels: Largest width times height. Pillow refuses about 179 million on its own.
        max_aspect_ratio: Largest ratio of the longer to the shorter side; Qwen-VL processors refuse 200.
        min_side: Shortest side in pixels that is let through.
    """

    max_pixels: int = 64_000_000
    max_aspect_ratio: float = 100.0
    min_side: int = 2

    def __post_init__(self) -> None:
        for name in ("max_pixels", "max_aspect_ratio", "min_side"):
            if getattr(self, name) < 1:
                raise ValueError(f"ImageLimits.{name} must be at least 1, got {getattr(self, name)}")

    def complaint(self, width: int, height: int) -> str | None:
        """Says why an image of this size is refused, or None.

        >>> ImageLimits().complaint(20000, 10000)
        '20000x10000 is 200,000,000 pixels, above the limit of 64,000,000 (max_pixels)'
        """
        short, long = sorted((width, height))
        if short < self.min_side:
            return f"{width}x{height} has a side below the limit of {self.min_side} pixels (min_side)"
        if width * height > self.max_pixels:
            return f"{width}x{height} is {width * height:,} pixels, above the limit of {self.max_pixels:,} (max_pixels)"
        if long > self.max_aspect_ratio * short:
            return f"{width}x{height} is longer than {self.max_aspect_ratio:g} to 1 (max_aspect_ratio)"
        return None


def inside(root: str | Path, name: str | Path) -> Path:
    """Path of a file that a data file names, sure to lie in the data folder.

    Args:
        root: The data folder.
        name: Name relative to it, as the data file gives it.

    Returns:
        The resolved path; whether there is such a file is not checked.

    Raises:
        ValueError: The name is absolute, is a URL, or leads outside, by `..` or through a symbolic link.
    """
    text, base = str(name), Path(root).resolve()
    if not text.strip() or "\0" in text:
        raise ValueError(f"{text!r} is no file name (data folder {base})")
    if "://" in text:
        raise ValueError(f"{text!r} is a URL; only files in the data folder {base} are read, nothing is fetched")
    if PurePosixPath(text).is_absolute() or PureWindowsPath(text).drive or text.startswith("\\"):
        raise ValueError(f"{text!r} is an absolute path; name files relative to the data folder {base}")
    path = (base / text).resolve()
    if not path.is_relative_to(base):
        raise ValueError(f"{text!r} leads out of the data folder {base} (to {path}); keep the files in the folder")
    return path


def picture_name(cell: Any) -> dict[str, str]:
    """Returns the fact that names a sample's picture in predictions; empty where the cell holds the picture itself.

    >>> picture_name("photos/a.jpg")
    {'picture': 'photos/a.jpg'}
    """
    name = cell.get("path") if isinstance(cell, Mapping) else cell
    return {"picture": str(name)} if isinstance(name, (str, Path)) and str(name) else {}


def load_image(
    source: Any, *, root: str | Path | None = None, limits: ImageLimits | None = None, name: str | None = None
) -> Image.Image:
    """Reads an image as a person would see it: upright, on white, three channels, first frame.

    Args:
        source: A path, the bytes of an image file, a Pillow image, or a mapping with `bytes` and `path` (an
            undecoded `datasets` image).
        root: Folder that a path must lie in and is relative to. Without it paths are taken as they are.
        limits: Largest and smallest size.
        name: What error messages call the image; its path where there is one and no name is given.

    Returns:
        An RGB image with its pixels loaded; a Pillow image that already is one is returned as it is.

    Raises:
        BadSample: Missing, empty, truncated, no image, or outside the limits.
        ValueError: The path leads out of `root`.
        TypeError: The source is of another type.
    """
    limits = limits or ImageLimits()
    if isinstance(source, Mapping):
        name = name or source.get("path")
        source = source["path"] if source.get("bytes") is None else source["bytes"]
    if isinstance(source, Image.Image):
        return _finished(source, limits, name or getattr(source, "filename", "") or "image")
    if isinstance(source, (bytes, bytearray, memoryview)):
        label, data = name or "image bytes", bytes(source)
        if not data:
            raise BadSample(f"{label}: empty, no bytes at all")
        return _decoded(io.BytesIO(data), limits, label)
    if isinstance(source, (str, Path)):
        try:
            path = Path(source) if root is None else inside(root, source)
        except (OSError, RuntimeError) as error:  # a link that leads to itself
            raise BadSample(f"{name or source}: cannot be followed ({error})") from error
        name = name or str(path)
        try:
            if not path.exists():
                hint = "; folders are parted by / here, not by a backslash" if "\\" in str(source) else ""
                raise BadSample(f"{name}: no such file{hint}")
            if not path.is_file():
                raise BadSample(f"{name}: not a regular file")
            if not path.stat().st_size:
                raise BadSample(f"{name}: empty file")
        except OSError as error:
            raise BadSample(f"{name}: cannot be opened ({error.strerror or error})") from error
        return _decoded(path, limits, name)
    if source is None:
        raise BadSample(f"{name or 'image'}: neither a path nor bytes")
    raise TypeError(
        f"{name or 'image'}: expected a path, bytes, a Pillow image or a mapping, got {type(source).__name__}"
    )


@functools.cache
def _known_formats() -> tuple[str, ...]:
    Image.init()  # fills Pillow's register; a Pillow built without, say, AVIF lacks that entry
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _decoded(file: Path | io.BytesIO, limits: ImageLimits, label: str) -> Image.Image:
    # Decoders raise nearly anything on broken input: OSError, SyntaxError, struct.error, KeyError, …
    try:
        image = Image.open(file, formats=_known_formats())
    except Image.UnidentifiedImageError as error:
        raise BadSample(f"{label}: not an image in any of the formats {', '.join(_known_formats())}") from error
    except Exception as error:
        raise BadSample(f"{label}: cannot be read as an image ({error})") from error
    with image:
        return _finished(image, limits, label)


def _finished(image: Image.Image, limits: ImageLimits, label: str) -> Image.Image:
    complaint = limits.complaint(*image.size)
    if complaint:
        raise BadSample(f"{label}: {complaint}")
    try:
        image.load()
        return to_rgb(_upright(image))
    except Exception as error:
        raise BadSample(f"{label}: cannot be decoded ({error})") from error


def _upright(image: Image.Image) -> Image.Image:
    try:
        turned = image.getexif().get(0x0112, 1) != 1
    except Exception:  # camera data that cannot be read say nothing about the pixels, which can
        turned = False
    return ImageOps.exif_transpose(image) if turned else image
