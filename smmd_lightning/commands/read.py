"""The command `smmd read`: what a trained model reads in pictures.

One real example::

    $ smmd read photos/*.jpg --model runs/quickstart/checkpoints/best.ckpt
    photos/a.jpg  03:05 (03:04 to 03:06)
    photos/b.jpg  11:20 (11:20 to 11:20)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from smmd_lightning.checkpoints.atomic import close_umask

if TYPE_CHECKING:
    from smmd_lightning.reading import Reading


def main(argv: Sequence[str] | None = None) -> int:
    """Reads pictures, or answers one question of text.

    Args:
        argv: Arguments after the command's name; those of the process when left out.

    Returns:
        Exit status: 0, or 1 with a message on stderr when something could not be read.
    """
    close_umask()
    parser = argparse.ArgumentParser(prog="smmd read", description="Ask a trained model about pictures.")
    parser.add_argument("pictures", metavar="PICTURE", nargs="*", help="files, folders or patterns")
    parser.add_argument("--model", required=True, help="a checkpoint, or an exported folder")
    parser.add_argument("--question", help="what to ask; what training asked when left out")
    parser.add_argument("--task", help="which task's question, for a model of several tasks")
    parser.add_argument("--json", action="store_true", help="one line of JSON a picture, with the distribution")
    parser.add_argument("--device", help="cpu, cuda, cuda:1; the first GPU when left out, where there is one")
    given = parser.parse_args(argv)
    from smmd_lightning.reading.pictures import find_pictures

    failed = 0
    try:
        files = find_pictures(given.pictures)
        if not files and given.question is None:
            raise ValueError("Give a picture, or a --question for a model of text.")
        from smmd_lightning.reading import Reader

        quiet_loading()
        reader = Reader(given.model, given.device)
        if not files:
            print(line_of(reader.read(None, given.question, given.task), given.json))
        for place, file in enumerate(files, start=1):
            _progress(place, len(files))
            try:
                print(line_of(reader.read(file, given.question, given.task), given.json), flush=True)
            except ValueError as error:
                if not str(error).startswith(str(file)):  # nothing about this picture: the others would fail as well
                    raise
                failed += 1
                print(f"smmd read: {error}", file=sys.stderr)
        _progress(0, 0)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"smmd read: {error}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def quiet_loading() -> None:
    """Turns off the bars of transformers where they would fill a log file."""
    if not sys.stderr.isatty():
        from transformers.utils import logging

        logging.disable_progress_bar()


def line_of(reading: Reading, as_json: bool) -> str:
    """Writes a reading as one line, for people or as JSON."""
    if as_json:
        return json.dumps(reading.plain(), ensure_ascii=False)
    return f"{reading.picture}  {reading}" if reading.picture else str(reading)


def _progress(place: int, total: int) -> None:
    """Counts on the terminal, where the readings themselves do not go there; (0, 0) wipes the line."""
    if total == 1 or not sys.stderr.isatty() or sys.stdout.isatty():
        return
    print(f"\r{place} of {total}" if total else "\r\033[K", end="", file=sys.stderr, flush=True)
