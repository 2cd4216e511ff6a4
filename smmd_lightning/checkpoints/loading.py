"""A module from a checkpoint, whatever its form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from smmd_lightning.checkpoints.atomic import temporary_folder

if TYPE_CHECKING:
    from smmd_lightning.module import SMMDModule


def load(checkpoint: str | Path) -> SMMDModule:
    """Returns the module that a checkpoint holds, on the CPU.

    Args:
        checkpoint: A file, or the folder of a sharded one.

    Raises:
        ValueError: There is no complete checkpoint.
        RuntimeError: Its names do not fit the model.
    """
    from smmd_lightning.checkpoints.sharded import consolidate
    from smmd_lightning.module import SMMDModule

    path = Path(checkpoint)
    if path.is_file():
        return SMMDModule.load_from_checkpoint(path, map_location="cpu", weights_only=True)
    if not path.is_dir():
        raise ValueError(f"There is no checkpoint at {path}.")
    with temporary_folder(path.with_name(f"{path.name}.whole")) as folder:
        whole = folder / "whole.ckpt"
        torch.save(consolidate(path, weights_only=True), whole)
        return SMMDModule.load_from_checkpoint(whole, map_location="cpu", weights_only=True)
