"""The one writer of files and folders: each is whole, or not there.

A draft is written beside its place, flushed to the disk and renamed, so a kill or a full disk at any moment leaves the
earlier file whole. A draft's name says who writes it (`drafts`); only drafts whose writer is provably dead are removed.
Nothing here follows a link, so in a folder shared with others nobody can redirect a write. What is written can be
changed by its owner and group at most, whatever the umask. Needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from smmd_lightning.checkpoints.drafts import draft_of, give_up, remove, remove_dead_drafts, take

FILE_MODE, FOLDER_MODE = 0o664, 0o775
"""Permissions before the umask takes some away; nothing is ever writable for everybody."""

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # which Windows lacks


def close_umask() -> None:
    """Takes the right to write away from everybody in all files that this process and its children will make.

    Every console command begins with it, since libraries write files too, with permissions of their own. What the
    umask takes away already stays taken away.
    """
    os.umask(os.umask(0o022) | 0o002)


def write_file(path: str | Path, write: Callable[[IO[bytes]], object]) -> None:
    """Writes a file so that at any moment either the earlier or the whole new one is there.

    Args:
        path: The file; a link there is replaced, not followed.
        write: Called with a file opened for writing bytes.

    Raises:
        RuntimeError: The file could not be written; names path and reason.
    """
    path = Path(path)
    try:
        make_folder(path.parent)
        with draft_of(path) as draft:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, FILE_MODE)
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
            _flush_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch.save reports a full disk as RuntimeError
        kept = "; the earlier file is untouched" if path.exists() else ""
        raise RuntimeError(
            f"{path} could not be written: {error}{kept}. Free space, or choose another folder (of a run: --run_dir)."
        ) from error


def write_bytes(path: str | Path, content: bytes) -> None:
    """Writes a file of this content, as `write_file` does.

    Raises:
        RuntimeError: The file could not be written; names path and reason.
    """
    write_file(path, lambda file: file.write(content))


def write_text(path: str | Path, text: str) -> None:
    r"""Writes a text in UTF-8, as `write_file` does.

    A lone surrogate, which UTF-8 lacks, is written as its escape, `\udc80`: in a string of JSON that is the same text.

    Args:
        path: The file.
        text: Its content; line ends stay as they are.

    Raises:
        RuntimeError: The file could not be written; names path and reason.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def append_text(path: str | Path, text: str) -> None:
    """Adds text to the end of a file, made where it is missing; a link there is refused.

    Args:
        path: The file.
        text: What to add, whole lines.

    Raises:
        OSError: The file cannot be written, or is a link.
    """
    with open_to_append(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def open_to_append(path: str | Path) -> IO[bytes]:
    """Opens a file to add bytes to its end, made where it is missing; a link there is refused.

    Raises:
        OSError: The file cannot be written, or is a link.
    """
    path = Path(path)
    make_folder(path.parent)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_FOLLOW, FILE_MODE), "ab")


def make_folder(path: str | Path) -> Path:
    """Makes a folder and its missing parents; returns it.

    Raises:
        OSError: It cannot be made, or something else is there.
    """
    path = Path(path)
    if not path.is_dir():
        if path.parent != path:
            make_folder(path.parent)
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:
            if not path.is_dir():  # otherwise another process was faster
                raise
    return path


@contextlib.contextmanager
def temporary_folder(path: str | Path) -> Iterator[Path]:
    """A new folder beside `path`, named as its draft and removed at the end, whatever happens.

    Args:
        path: What the folder is for.

    Yields:
        The folder.

    Raises:
        OSError: The folder cannot be made.
    """
    path = Path(path)
    make_folder(path.parent)
    with draft_of(path) as draft:
        os.mkdir(draft, FOLDER_MODE)
        yield draft


@contextlib.contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """A draft of a folder that gets its name when the block ends without an error; a kill leaves no half folder.

    Args:
        path: The folder's final place; an empty folder may be there.

    Yields:
        The draft, an empty folder.

    Raises:
        FileExistsError: Something is at the final place; the draft is gone.
        OSError: The folder cannot be made.
    """
    path = Path(path)
    with temporary_folder(path) as draft:
        yield draft
        flush_tree(draft)
        try:
            os.rename(draft, path)
        except OSError as error:
            raise FileExistsError(f"{path} is there already; it stays as it is.") from error
        _flush_folder(path.parent)


def new_draft_folder(path: str | Path) -> Path:
    """Makes a draft of a folder that several processes fill together; `replace_folder` gives it its name.

    Args:
        path: The folder's final place.
    """
    path = Path(path)
    make_folder(path.parent)
    draft = take(path)
    remove_dead_drafts(path.parent)
    os.mkdir(draft, FOLDER_MODE)
    return draft


def replace_folder(draft: Path, path: str | Path) -> None:
    """Gives a whole draft its name; the earlier folder (or file) of that name goes.

    Two renamings, between which a kill leaves the draft whole and `path` missing: readers look for such drafts too.

    Args:
        draft: What `new_draft_folder` returned, filled.
        path: The final place.
    """
    path = Path(path)
    flush_tree(draft)
    earlier = take(path)
    if path.is_symlink() or path.exists():
        os.rename(path, earlier)
    os.rename(draft, path)
    _flush_folder(path.parent)
    remove(earlier)
    give_up(draft, earlier)
    remove_dead_drafts(path.parent)


def flush_tree(folder: Path) -> None:
    """Flushes all files of a folder to the disk, so that they survive a power cut once the folder is renamed.

    Libraries fill such folders; where the umask is open, the right of everybody to write is taken away here.
    """
    for place, _, files in os.walk(folder):
        for name in files:
            handle = os.open(Path(place) / name, os.O_RDONLY | _NO_FOLLOW)
            try:
                os.fsync(handle)
                _close(handle)
            finally:
                os.close(handle)
        _flush_folder(Path(place), close=True)


def _close(handle: int) -> None:
    """Takes the right to write away from everybody, if everybody has it."""
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & stat.S_IWOTH:
        os.fchmod(handle, mode & ~stat.S_IWOTH)


def _flush_folder(folder: Path, close: bool = False) -> None:
    """Flushes a folder's list of names, so that a new name survives a power cut too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
        if close:
            _close(handle)
    finally:
        os.close(handle)
