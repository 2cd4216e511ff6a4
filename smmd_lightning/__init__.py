"""Fine-tune language and vision-language models that answer with numbers.

Names are loaded when they are first used, so that `from smmd_lightning import SMMDLoss` in somebody's own training loop
loads neither Lightning nor transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smmd_lightning._version import __version__

if TYPE_CHECKING:
    from smmd_lightning.losses import NumericLoss, SMMDLoss
    from smmd_lightning.module import SMMDModule
    from smmd_lightning.reading import Reader
    from smmd_lightning.types import IGNORE_INDEX, Batch, NumericExample, SampleKey
    from smmd_lightning.vocabulary import NumericVocabulary

__all__ = [
    "IGNORE_INDEX",
    "Batch",
    "NumericExample",
    "NumericLoss",
    "NumericVocabulary",
    "Reader",
    "SMMDLoss",
    "SMMDModule",
    "SampleKey",
    "__version__",
]

_HOME = {
    "NumericLoss": "losses",
    "SMMDLoss": "losses",
    "SMMDModule": "module",
    "NumericVocabulary": "vocabulary",
    "Reader": "reading",
    "IGNORE_INDEX": "types",
    "Batch": "types",
    "NumericExample": "types",
    "SampleKey": "types",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
