"""Reading torch's sharded checkpoint folders (torch 2.9 to 2.14) without running code from them.

torch unpickles two things in such a folder freely: the file `.metadata`, and values that are no tensors. Here a list of
classes says what `.metadata` may hold, and values pass through `torch.load(weights_only=True)` first.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import DefaultLoadPlanner, FileSystemReader
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.filesystem import StorageMeta
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import ReadItem
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

OF_METADATA = {
    "torch.distributed.checkpoint.metadata": {
        "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata",
        "BytesStorageMetadata", "ChunkStorageMetadata", "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch.serialization": {"_get_layout"},
    "torch": {"Size"},
    "pathlib": {"PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath"},
    "pathlib._local": {"PosixPath", "PurePosixPath"},
    "collections": {"OrderedDict"},
}  # fmt: skip
"""Classes and functions that torch itself writes into `.metadata`, by module; types such as `torch.float32` as well."""


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = name in OF_METADATA.get(module, ()) or (
            module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        )
        if not known:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no part of a checkpoint")
        return super().find_class(module, name)


class SafeFolderReader(FileSystemReader):
    """Reads a folder whose `.metadata` holds what torch writes and nothing else."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns what the folder holds.

        Raises:
            ValueError: `.metadata` is damaged, holds code, or names a file outside the folder.
        """
        file = Path(self.path) / ".metadata"
        try:
            with file.open("rb") as opened:
                metadata = _MetadataUnpickler(opened).load()
        except OSError:
            raise
        except Exception as error:  # broken pickles raise nearly anything
            raise ValueError(f"{file} cannot be read: {type(error).__name__}: {error}") from error
        if not isinstance(metadata, Metadata):
            raise ValueError(f"{file} holds a {type(metadata).__name__}, no description of a checkpoint.")
        for place in (metadata.storage_data or {}).values():
            if Path(place.relative_path).name != str(place.relative_path):
                raise ValueError(f"{file} names {place.relative_path}, which does not lie in the folder.")
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id  # type: ignore[union-attr]
        return metadata


class _SafeValues:
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        plain, copy = torch.load(value, map_location="cpu", weights_only=True), io.BytesIO()
        torch.save(plain, copy)  # what torch then unpickles freely was written here
        copy.seek(0)
        super().load_bytes(read_item, copy)  # type: ignore[misc]


class SafePlanner(_SafeValues, DefaultLoadPlanner):
    """Reads into a state that is there, without running code from values that are no tensors."""


class _SafeWholePlanner(_SafeValues, _EmptyStateDictLoadPlanner):
    pass


def read_sharded(folder: Path, keys: set[str] | None = None) -> dict[str, Any]:
    """Returns the tensors of a folder, read by one process without a process group.

    torch offers this publicly only as a conversion from folder to file (`dcp_to_torch_save`), which reads everything.

    Args:
        folder: The folder.
        keys: Top-level names to read. None: all.

    Raises:
        ValueError: The folder holds code, or names files outside it.
    """
    tensors: dict[str, Any] = {}
    planner = _SafeWholePlanner(keys=keys)
    with _named(folder):
        _load_state_dict(tensors, storage_reader=SafeFolderReader(folder), planner=planner, no_dist=True)
    return tensors


def read_into(state: dict[str, Any], folder: Path) -> None:
    """Reads a folder into the tensors of a state, on all processes together; without a process group, on this one.

    Raises:
        ValueError: The folder holds code, or names files outside it.
    """
    with _named(folder):
        dcp.load(state, storage_reader=SafeFolderReader(folder), planner=SafePlanner())


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    """Makes an error of what torch raises, which is none, and which ordinary handlers would let pass."""
    try:
        yield
    except dcp.CheckpointException as error:
        causes = "; ".join(str(failure[0]) for failure in error.failures.values())
        raise ValueError(f"{folder} cannot be read: {causes}") from error
