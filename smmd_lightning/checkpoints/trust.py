"""What a checkpoint may ask for: trust comes from the person at the command line, never from a file.

Settings in a checkpoint name classes, which are imported, and a model, which may bring code. So classes must come from
this project, from `torch.optim`, or from packages that the person allows; and `trust_remote_code` in a checkpoint
counts for nothing.

One real example::

    >>> trusted({"optimizer": {"class_path": "os.system", "init_args": {}}}, "last.ckpt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: last.ckpt asks for optimizer.class_path=os.system, ...
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from typing import Any

ALLOWED = ("smmd_lightning", "datamodules", "torch.optim")
"""Packages whose classes a checkpoint may name."""

TEXTS = {"path", "revision", "freeze", "target_modules", "also_train", "weights", "watch"}
"""Settings that hold names of models, files, parameters or metrics, which nothing imports."""

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def trusted(
    settings: Mapping[str, Any], source: Any, allow: Iterable[str] = (), trust_remote_code: bool = False
) -> dict[str, Any]:
    """Returns a checkpoint's settings, with `trust_remote_code` switched off unless the caller says it too.

    Args:
        settings: The checkpoint's `hyper_parameters`.
        source: The checkpoint's name, for the message.
        allow: Further packages or classes that may be named.
        trust_remote_code: Whether code that comes with a model may run, where the checkpoint asks for that.

    Raises:
        ValueError: A class lies elsewhere; names setting and class.
    """
    allowed = (*ALLOWED, *allow)

    def visit(value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, Mapping):
            return {
                key: item and trust_remote_code if key == "trust_remote_code" else visit(item, (*place, str(key)))
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [visit(item, place) for item in value]
        if isinstance(value, str) and _names_a_class(value, place[-1]) and not _within(value, allowed):
            raise ValueError(
                f"{source} asks for {'.'.join(place)}={value}, which lies outside {', '.join(allowed)}. If you trust "
                f"it, pass --allow {value.partition('.')[0]} (in Python: allow=({value.partition('.')[0]!r},))."
            )
        return value

    return {
        key: value if key == "_instantiator" else visit({key: value}, ())[key] for key, value in dict(settings).items()
    }


def _names_a_class(text: str, setting: str) -> bool:
    if setting in ("class_path", "_class_path"):
        return "." in text
    if setting in TEXTS or not _DOTTED.fullmatch(text):
        return False
    try:
        return importlib.util.find_spec(text.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _within(name: str, allowed: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in allowed)


def refuse_url(path: Any) -> None:
    """Refuses checkpoints that lie elsewhere, which other libraries would fetch and unpickle.

    Raises:
        ValueError: The path is a URL.
    """
    if "://" in str(path):
        raise ValueError(f"{path} is a URL; a checkpoint is read from this machine alone. Copy it here first.")
