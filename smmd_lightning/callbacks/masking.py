"""Keeps passwords and keys of loggers out of the files that a run writes.

One real example::

    >>> masked({"class_path": "WandbLogger", "init_args": {"project": "clocks", "api_key": "abc123"}})
    {'class_path': 'WandbLogger', 'init_args': {'project': 'clocks', 'api_key': '***'}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jsonargparse import Namespace

MASK = "***"

# "pad_token" and "max_new_tokens" are no secrets, so a bare "token" counts only as a whole name.
_NAME = re.compile(
    r"(^|_)(api|access|auth|bearer|hf|hub|private|refresh|secret|session|wandb|comet|neptune)_?(token|key)s?$"
    r"|^(token|auth|authorization|apikey)$|passw(or)?d|passphrase|secret|credential",
    re.IGNORECASE,
)
_URL = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")
_QUERY = re.compile(r"([?&](?:[\w-]*[_-])?(?:token|api_?key|key|secret|password|signature)=)[^&\s#]+", re.IGNORECASE)


def masked(settings: Any, name: str = "") -> Any:
    """Returns settings with secrets replaced by `***`; those given are not changed.

    A secret is a text or number whose name says so (`api_key`, `hf_token`, `password`, …) or stands below such a name,
    and the password or token in a URL.

    Args:
        settings: Nested mappings, namespaces (jsonargparse), lists and values.
        name: What `settings` is called.
    """
    if isinstance(settings, Mapping):
        return {key: masked(value, _below(name, str(key))) for key, value in settings.items()}
    if isinstance(settings, Namespace):
        copy = settings.clone()
        for key, value in vars(copy).items():
            setattr(copy, key, masked(value, _below(name, str(key))))
        return copy
    if isinstance(settings, (list, tuple)):
        return type(settings)(masked(value, name) for value in settings)
    if _NAME.search(name) and isinstance(settings, (str, int, float)) and not isinstance(settings, bool) and settings:
        return MASK
    if isinstance(settings, str):
        return _QUERY.sub(rf"\1{MASK}", _URL.sub(rf"\1:{MASK}@", settings))
    return settings


def _below(name: str, key: str) -> str:
    return name if _NAME.search(name) else key
