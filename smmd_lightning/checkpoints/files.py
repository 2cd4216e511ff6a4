"""Checkpoint files that are whole or not there, and finding the one to go on from.

Unusual: a file is taken for complete only after it could be opened.
"""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO

from smmd_lightning.checkpoints.atomic import write_file
from smmd_lightning.checkpoints.drafts import drafts
from smmd_lightning.checkpoints.sharded import META, consolidate

log = logging.getLogger(__name__)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints of this machine's file system whole or not at all; reads without unpickling code."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Writes, flushes to the disk, renames.

        Args:
            checkpoint: What to write.
            path: A local path; remote ones (`s3://…`) are left to Lightning.
            storage_options: Not supported here.

        Raises:
            RuntimeError: The file could not be written (disk full, folder read-only); an earlier one is untouched.
        """
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        write_file(Path(path), lambda file: torch.save(checkpoint, file))

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: bool | None = None) -> Any:
        """Reads a file, or a sharded checkpoint's folder, which is put together in memory.

        Args:
            path: The file or folder.
            map_location: As in `torch.load`.
            weights_only: As in `torch.load`; folders are always read without unpickling code.

        Raises:
            ValueError: A folder holds no complete checkpoint.
        """
        if "://" not in str(path) and Path(path).is_dir():
            return consolidate(Path(path))
        return super().load_checkpoint(path, map_location, weights_only)


def newest_complete(folder: Path) -> Path | None:
    """Returns the checkpoint with the most optimizer steps that can be read, or None.

    Args:
        folder: A run's `checkpoints` folder; files are whole checkpoints, folders are sharded ones.
    """
    found = []
    # A whole draft is a sharded checkpoint whose process died just before it could be renamed.
    whole = [draft for draft in drafts(folder, "*.ckpt*") if draft.is_dir()]
    paths = [*folder.glob("*.ckpt"), *whole] if folder.is_dir() else []
    for path in sorted(paths):
        step = _step(path)
        if step is not None:
            found.append((step, path.stat().st_mtime_ns, path))
    return max(found)[2] if found else None


def _step(path: Path) -> int | None:
    """Returns a checkpoint's optimizer steps; None when it is not complete."""
    file = path / META if path.is_dir() else path
    if path.is_dir() and not (path / ".metadata").is_file():  # written last by torch's distributed checkpoints
        return None
    try:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no whole file")
        return int(torch.load(file, map_location="cpu", weights_only=True, mmap=True)["global_step"])
    except Exception as error:  # damaged pickles raise nearly anything; those that hold code an UnpicklingError
        log.warning("%s is passed over, it cannot be read: %s: %s", path, type(error).__name__, error)
        return None
