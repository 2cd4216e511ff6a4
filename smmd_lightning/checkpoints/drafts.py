"""Names of drafts, and which of them nobody is writing any more.

One real example, the draft of a checkpoint that process 4711 of node07 is writing::

    .last.ckpt.node07-5c1d02ab.4711.9f3a6c21.draft
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

DRAFT = ".draft"
"""Ending of all drafts."""
_own: set[str] = set()
"""Names of the drafts that this process is writing."""


def drafts(folder: Path, name: str = "*") -> list[Path]:
    """Returns the drafts in a folder, of what is called `name` (a pattern), in order.

    Args:
        folder: The folder.
        name: Pattern of the final names.
    """
    return sorted(folder.glob(f".{name}{DRAFT}"))


def is_dead(draft: Path) -> bool:
    """Returns whether a draft's writer ended for certain: a process of this machine's present run that is no more.

    What another machine writes, or this one wrote before it was started again, cannot be told, and is not called dead.
    """
    parts = draft.name.removesuffix(DRAFT).rsplit(".", 3)
    if len(parts) != 4 or parts[1] != _machine() or not parts[2].isdecimal():
        return False
    pid = int(parts[2])
    if pid == os.getpid():
        return draft.name not in _own
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def remove_dead_drafts(folder: Path) -> None:
    """Removes drafts whose writers died; each may be as large as a checkpoint.

    A draft of a folder stays while nothing has its final name: it may be whole, and all that is left of a checkpoint.
    """
    for draft in drafts(folder):
        final = folder / draft.name.removesuffix(DRAFT).rsplit(".", 3)[0][1:]
        if is_dead(draft) and (final.exists() or not draft.is_dir()):
            with contextlib.suppress(OSError):
                remove(draft)


def remove(path: Path) -> None:
    """Removes a file, a link or a folder with all that is in it; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """The name of a draft of `path`, which is this process's until the block ends; what is left there then goes."""
    draft = take(path)
    remove_dead_drafts(path.parent)  # first: the disk may be full of them
    try:
        yield draft
    finally:
        with contextlib.suppress(OSError):
            remove(draft)
        give_up(draft)


def take(path: Path) -> Path:
    """Returns a new name for a draft of `path`, this process's until it is given up."""
    draft = path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}{DRAFT}")
    _own.add(draft.name)
    return draft


def give_up(*drafts: Path) -> None:
    """Says that this process writes these drafts no more; what is left of them counts as dead."""
    _own.difference_update(draft.name for draft in drafts)


@functools.cache
def _machine() -> str:
    """This machine since its last start, as far as process numbers mean the same: another container is another one."""
    facts = []
    for source in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with contextlib.suppress(OSError):
            facts.append(os.readlink(source) if source.endswith("pid") else Path(source).read_text(encoding="ascii"))
    host = socket.gethostname()
    digest = hashlib.sha256("\n".join([host, *facts]).encode()).hexdigest()[:8]
    return f"{''.join(sign if sign.isalnum() else '-' for sign in host[:40])}-{digest}"
