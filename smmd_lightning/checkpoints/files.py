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
from smmd_lightning.checkpoints.sharded import META, consolidate, read_file
from smmd_lightning.checkpoints.trust import refuse_url

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
            weights_only: Not used; nothing is read in a way that could run code.

        Raises:
            ValueError: A folder holds no complete checkpoint, a file is damaged or holds code, or the path is a URL;
                names it.
        """
        refuse_url(path)
        if Path(path).is_dir():
            return consolidate(Path(path))
        try:
            return super().load_checkpoint(path, map_location, weights_only=True)
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # a damaged file raises nearly anything, without its name
            raise ValueError(f"{path} cannot be read: {type(error).__name__}: {error}") from error


def newest_complete(folder: Path) -> Path | None:
    """Returns the checkpoint with the most optimizer steps that can be read; None where there is none to go on from.

    Damaged checkpoints are passed over, with a warning, where another one is whole; so are those that hold weights
    alone, as callbacks of the user's may write.

    Args:
        folder: A run's `checkpoints` folder; files are whole checkpoints, folders are sharded ones.

    Raises:
        RuntimeError: There are checkpoints, but none can be read: to start from the beginning would lose them. Or the
            folder itself cannot be read. Names files and reasons.
    """
    try:
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise RuntimeError(f"{folder} cannot be read: {error}. Look at its owner and permissions.") from error
    # A whole draft is a sharded checkpoint whose process died just before it could be renamed.
    whole = [draft for draft in drafts(folder, "*.ckpt*") if draft.is_dir() and (draft / ".metadata").is_file()]
    found, unreadable = [], {}
    for path in sorted([*(folder / name for name in names if name.endswith(".ckpt")), *whole]):
        try:
            step = steps_of(path)
        except (ValueError, OSError) as error:
            unreadable[path] = str(error)
        else:
            if step is None:
                log.warning("%s is passed over: it holds weights alone, no training to go on with", path)
            else:
                found.append((step, path.stat().st_mtime_ns, path))
    if unreadable and not found:
        listed = "".join(f"\n  {error}" for error in unreadable.values())
        raise RuntimeError(
            f"No checkpoint in {folder} can be read:{listed}\nMend what keeps them from being read, or move the folder "
            "away to start from the beginning."
        )
    for reason in unreadable.values():
        log.warning("passed over: %s", reason)
    return max(found)[2] if found else None


def steps_of(path: Path) -> int | None:
    """Returns a checkpoint's optimizer steps; None where it holds no state of a training.

    All of a file is read, since every part of it has a checksum.

    Args:
        path: A file, or a sharded checkpoint's folder.

    Raises:
        ValueError: It is damaged, incomplete or holds code; names it and says why.
        OSError: It cannot be read.
    """
    file = path / META if path.is_dir() else path
    if path.is_dir() and not (path / ".metadata").is_file():  # written last by torch's distributed checkpoints
        raise ValueError(f"{path} is incomplete: .metadata is missing.")
    with file.open("rb") as opened:
        try:
            with zipfile.ZipFile(opened) as archive:
                damaged = archive.testzip()
        except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
            raise ValueError(f"{file} is damaged or cut short: {error}.") from error
        if damaged is not None:
            raise ValueError(f"{file} is damaged: the checksum of {damaged} does not fit.")
    checkpoint = read_file(file)
    trained = "loops" in checkpoint and ("optimizer_states" in checkpoint or path.is_dir())
    return int(checkpoint["global_step"]) if trained else None
