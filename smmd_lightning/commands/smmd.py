"""The command `smmd`: `read` and `serve` use a trained model, everything else is Lightning's command line.

One real example::

    $ smmd read photo.jpg --model runs/quickstart/checkpoints/best.ckpt
    photo.jpg  03:05 (03:04 to 03:06)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from smmd_lightning.checkpoints.atomic import close_umask

OWN = ("read", "serve")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: Arguments after the program's name; those of the process when left out.

    Returns:
        Exit status.
    """
    close_umask()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in OWN:
        status: int = import_module(f"smmd_lightning.commands.{arguments[0]}").main(arguments[1:])
        return status
    import_module("datamodules").load_all()  # so that configs can name data modules without their package
    from smmd_lightning import cli

    cli.main() if argv is None else cli.main(arguments)
    return 0
