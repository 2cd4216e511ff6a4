"""A batch on its way out of a worker process, all its tensors in one piece of shared memory.

Every tensor that leaves a worker costs the training process a connection to it and a handshake, 0.8 ms each; a batch of
pictures has four. So they travel as one.

One real example::

    batch = Parcel.pack(batch).unpack()
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from smmd_lightning.types import Batch

ALIGNMENT = 64
"""Bytes; where a tensor may begin, so that vector instructions reach it as well as one of its own."""


@dataclass(frozen=True)
class Parcel:
    """Packed batch.

    Attributes:
        outline: The batch with its tensors on torch's `meta` device: types and shapes alone.
        data: (bytes,) uint8, the tensors one after the other.
    """

    outline: Batch
    data: Tensor

    @classmethod
    def pack(cls, batch: Batch) -> Parcel:
        """Copies a batch's tensors into one."""
        tensors: list[Tensor] = []

        def outlined(tensor: Tensor) -> Tensor:
            tensors.append(tensor.contiguous())
            return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")

        outline = batch.map_tensors(outlined)
        data = torch.empty(sum(_room(tensor) for tensor in tensors), dtype=torch.uint8)
        start = 0
        for tensor in tensors:
            data[start : start + tensor.nbytes] = tensor.view(-1).view(torch.uint8)
            start += _room(tensor)
        return cls(outline, data)

    def pin_memory(self) -> Parcel:
        """Returns the parcel in page-locked memory, from where copies to a GPU overlap."""
        return replace(self, data=self.data.pin_memory())

    def unpack(self) -> Batch:
        """Returns the batch; its tensors are views of the one piece of memory."""
        start = 0

        def filled(outline: Tensor) -> Tensor:
            nonlocal start
            view = self.data[start : start + outline.nbytes].view(outline.dtype).view(outline.shape)
            start += _room(outline)
            return view

        return self.outline.map_tensors(filled)


def _room(tensor: Tensor) -> int:
    return -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
