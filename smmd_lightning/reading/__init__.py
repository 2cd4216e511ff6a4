"""Asks a trained model about one picture or one text: value, unit, interval.

One real example::

    from smmd_lightning import Reader

    reader = Reader("runs/quickstart/checkpoints/best.ckpt")
    print(reader.read("photo.jpg").value)                        # 03:05
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smmd_lightning.reading.reader import Reader, Reading

__all__ = ["Reader", "Reading"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.reader"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
