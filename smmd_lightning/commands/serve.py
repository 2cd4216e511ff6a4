"""The command `smmd serve`: a page on this machine that reads the pictures dropped on it.

One real example::

    $ smmd serve --model runs/quickstart/checkpoints/best.ckpt
    http://127.0.0.1:8765/  (stop with Ctrl+C)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from smmd_lightning.checkpoints.atomic import close_umask
from smmd_lightning.commands.read import quiet_loading


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until it is interrupted.

    Args:
        argv: Arguments after the command's name; those of the process when left out.

    Returns:
        Exit status: 0, or 1 with a message on stderr where there is no such model or address.
    """
    close_umask()
    parser = argparse.ArgumentParser(prog="smmd serve", description="Open a page that reads pictures with a model.")
    parser.add_argument("--model", required=True, help="a checkpoint, or an exported folder")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 lets others in")
    parser.add_argument("--port", type=int, default=8765, help="0 takes a free one")
    parser.add_argument("--device", help="cpu, cuda, cuda:1; the first GPU when left out, where there is one")
    given = parser.parse_args(argv)
    try:
        from smmd_lightning.reading import Reader
        from smmd_lightning.reading.serving import LOOPBACK, make_server, name_of

        quiet_loading()
        server = make_server(Reader(given.model, given.device), given.host, given.port, name_of(given.model))
    except (ValueError, RuntimeError, OSError) as error:
        print(f"smmd serve: {error}", file=sys.stderr)
        return 1
    if given.host not in LOOPBACK:
        print("Everybody who reaches this address can ask the model.", file=sys.stderr)
    print(f"{server.url}  (stop with Ctrl+C)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
