"""Keeps passwords and keys of loggers out of the files that a run writes.

One real example::

    >>> masked({"class_path": "WandbLogger", "init_args": {"project": "clocks", "api_key": "abc123"}})
    {'class_path': 'WandbLogger', 'init_args': {'project': 'clocks', 'api_key': '***'}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from jsonargparse import Namespace

MASK = "***"

_NAME = re.compile(
    r"(^|_)(api|access|account|auth|encryption|hf|hub|private|sas|secret|session|shared|signing|wandb|comet|neptune)_?keys?$"
    r"|(^|_)tokens?$|^(auth|authorization|apikey)$|passw(or)?d|passphrase|secret|credential|webhook|connection_?string",
    re.IGNORECASE,
)
# Tokens of a tokenizer and numbers of tokens are no secrets.
_OF_TEXT = re.compile(
    r"(^|_)(pad|eos|bos|unk|sep|cls|mask|image|images|video|audio|boi|eoi|special|stop|start|end|text|new|max|min|num|all"
    r"|prompt|answer|context|per|of|stop|image_end|image_start|forced|decoder_start|numeric|loss|supervised|total|visual|patch)_tokens?$|^tokens$",
    re.IGNORECASE,
)
_URL = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")
_USER = re.compile(r"(?<=://)[^/\s:@]{12,}@")
_QUERY = re.compile(
    r"([?&](?:[\w-]*[_-])?(?:token|api_?key|key|secret|password|signature|sig|code)=)[^&\s#]+", re.IGNORECASE
)
_HOOK = re.compile(
    r"((?:hooks\.slack\.com/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/)[^\s?#]*?)[^/\s?#]+$"
)


def is_secret(name: str) -> bool:
    """Whether a setting's name says that its value is a secret.

    >>> [is_secret(name) for name in ("github_token", "api-key", "pad_token", "max_new_tokens", "token")]
    [True, True, False, False, True]
    """
    name = name.replace("-", "_").replace(" ", "_")
    return bool(_NAME.search(name)) and not _OF_TEXT.search(name)


def masked(settings: Any, name: str = "") -> Any:
    """Returns settings with secrets replaced by `***`; those given are not changed.

    A secret is a text or number whose name says so (`api_key`, `hf_token`, `password`, …) or stands below such a name,
    and the password, token, signature or webhook in a URL.

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
    if is_secret(name) and isinstance(settings, (str, int, float)) and not isinstance(settings, bool) and settings:
        return MASK
    if isinstance(settings, str):
        text = _USER.sub(f"{MASK}@", _URL.sub(rf"\1:{MASK}@", settings))
        return _HOOK.sub(rf"\1{MASK}", _QUERY.sub(rf"\1{MASK}", text))
    return settings


class MaskedStream:
    """A stream of text in which the secrets of some settings become `***`, as error messages quote settings.

    Secrets shorter than four characters are left, since they would be found in ordinary words.

    Args:
        stream: Where the text goes.
        settings: Settings with their secrets.
    """

    def __init__(self, stream: TextIO, settings: Any) -> None:
        self._stream = stream
        self._shown: dict[str, str] = {}
        for secret, shown in _changes(settings, masked(settings)):
            if len(secret) >= 4:
                self._shown |= {secret: shown, repr(secret)[1:-1]: shown}

    def write(self, text: str) -> int:
        """Writes text; a secret must not be split over two calls."""
        for secret, shown in self._shown.items():
            text = text.replace(secret, shown)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's."""
        return getattr(self._stream, name)


def _changes(settings: Any, shown: Any) -> Iterator[tuple[str, str]]:
    """Yields texts that were masked with what stands in their place, of plain mappings and lists."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield from _changes(value, shown[key])
    elif isinstance(settings, (list, tuple)):
        for value, other in zip(settings, shown, strict=True):
            yield from _changes(value, other)
    elif isinstance(settings, str) and settings != shown:
        yield settings, shown


def _below(name: str, key: str) -> str:
    return name if is_secret(name) else key
