"""`smmd-models`: the architectures of the installed transformers that can be trained here, and why the others cannot.

smmd-models                     # image-text-to-text models
smmd-models --text gemma3 qwen3 # some language models
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from smmd_lightning.backbones.catalogue import catalogue
from smmd_lightning.checkpoints.atomic import close_umask


def main(args: Sequence[str] | None = None) -> None:
    """Runs `smmd-models`.

    Args:
        args: Arguments. None: those of this process.
    """
    close_umask()
    parser = argparse.ArgumentParser(
        prog="smmd-models", description="Lists the architectures that can be trained here."
    )
    parser.add_argument("names", nargs="*", help="model types, as in a config.json; all if none is given")
    parser.add_argument("--text", action="store_true", help="language models instead of image-text-to-text models")
    given = parser.parse_args(args)
    trained = total = 0
    seen = set()
    for entry in catalogue("text" if given.text else "images", set(given.names) or None):
        total += 1
        trained += entry.reason is None
        seen.add(entry.model_type)
        print(f"{entry.model_type:<28} {'yes' if entry.reason is None else f'no: {entry.reason}'}", flush=True)
    if unknown := sorted(set(given.names) - seen):
        sys.exit(
            f"smmd-models: the installed transformers has no such {'text' if given.text else 'image'} model: {unknown}"
        )
    print(f"{trained} of {total} can be trained")
