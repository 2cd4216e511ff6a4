"""Where a model's files are: our own short names, GGUF files, and everything transformers finds by itself.

Unusual here: a tiny preset or a converted model is written the first time it is asked for, beside its final place, and
moved there in one step, so that any number of processes may ask at once. Its folder's name holds a hash of everything
that determines its content, so a changed preset is a new folder.

Real examples::

    >>> split_gguf("models/SmolLM2.Q4_1.gguf")
    ('models', 'SmolLM2.Q4_1.gguf')
    >>> locate("Qwen/Qwen2.5-VL-3B-Instruct")  # a hub name stays what it is
    'Qwen/Qwen2.5-VL-3B-Instruct'
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from smmd_lightning.checkpoints.atomic import new_folder

TINY = "tiny:"
SMOLLM2 = "smollm2-135m"
DINOV2 = "dinov2-s14"
SMOLLM2_DINOV2 = "smollm2-dinov2"
JOINED_IMAGE_SIZE = 224
"""Edge in pixels of the pictures of `smollm2-dinov2`: 256 tokens each; `image_options` make it smaller."""


def locate(path: str) -> str:
    """Returns what transformers can load for a model's name.

    Args:
        path: "tiny:NAME" (a tiny preset), "smollm2-135m", "dinov2-s14" or "smollm2-dinov2" (from the extras `smollm2`
            and `vlm`), a folder, a GGUF file, or a hub name; the last three are returned as they are.

    Raises:
        ValueError: There is no such tiny preset, or a GGUF file does not exist.
        RuntimeError: The package that a name needs is not installed.
    """
    from smmd_lightning.backbones.tiny.tower_config import register_config

    register_config()  # or transformers could not read the configuration of a model with that tower
    if path.startswith(TINY):
        from smmd_lightning.backbones.tiny import presets as tiny

        preset = tiny.find(path.removeprefix(TINY))
        name = f"tiny-{path.removeprefix(TINY)}-{tiny.fingerprint(preset)}"
        return written_once(cache_folder() / name, lambda folder: tiny.write(preset, folder))
    if path == SMOLLM2:
        from smmd_lightning.backbones import smollm2

        file = smollm2.gguf_file()
        name = f"{SMOLLM2}-{smollm2.fingerprint(file)}"
        return written_once(cache_folder() / name, lambda folder: smollm2.convert(file, folder))
    if path == DINOV2:
        from smmd_lightning.backbones import dinov2

        file = dinov2.onnx_file()
        name = f"{DINOV2}-{dinov2.fingerprint(file)}"
        return written_once(cache_folder() / name, lambda folder: dinov2.convert(file, folder))
    if path == SMOLLM2_DINOV2:
        from smmd_lightning.backbones import joining

        tower, language = locate(DINOV2), locate(SMOLLM2)
        name = f"{SMOLLM2_DINOV2}-{joining.fingerprint(tower, language)}"
        return written_once(
            cache_folder() / name,
            lambda folder: joining.join(tower, language, folder, image_size=JOINED_IMAGE_SIZE),
        )
    if not path or (path.startswith(("/", "./", "../", "~")) and not Path(path).expanduser().exists()):
        raise ValueError(f"there is no model at {path!r} (model.backbone.init_args.path; from {Path.cwd()})")
    return str(Path(path).expanduser()) if path.startswith("~") else path


def split_gguf(path: str) -> tuple[str, str | None]:
    """Splits "folder/file.gguf" into folder and file; anything else is returned with None."""
    if not path.endswith(".gguf"):
        return path, None
    folder, _, file = path.rpartition("/")
    return folder or ".", file


def cache_folder() -> Path:
    """The folder for written models: `$SMMD_CACHE`, else `smmd_lightning` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if own := os.environ.get("SMMD_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smmd_lightning"


def written_once(folder: Path, write: Callable[[Path], object]) -> str:
    """Returns a folder, written now if it is not there; never half written, whoever else writes it meanwhile.

    Args:
        folder: The final place.
        write: Fills an empty folder.
    """
    if not folder.is_dir():
        # Another process may be faster; its folder has the same content.
        with contextlib.suppress(FileExistsError), new_folder(folder) as draft:
            write(draft)
    return str(folder)
