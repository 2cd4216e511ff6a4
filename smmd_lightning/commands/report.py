"""The command `smmd-report`: writes the page about a run.

One real example::

    $ smmd-report runs/quickstart
    runs/quickstart/report.html
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from smmd_lightning.checkpoints.atomic import close_umask


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the page about each run named.

    Args:
        argv: Arguments after the program's name; those of the process when left out.

    Returns:
        Exit status: 0, or 1 with a message on stderr when a folder holds no run.
    """
    close_umask()
    parser = argparse.ArgumentParser(
        prog="smmd-report", description="Write a self-contained HTML page about a run into its folder."
    )
    parser.add_argument("runs", metavar="RUN_DIR", nargs="+", help="folder of a run")
    parser.add_argument("--output", metavar="FILE", help="write there instead (one RUN_DIR only)")
    parser.add_argument(
        "--before", metavar="RUN_DIR", help="run of the same model before training; both with save_distributions"
    )
    arguments = parser.parse_args(argv)
    if arguments.output and len(arguments.runs) > 1:
        parser.error("--output goes with one RUN_DIR only")
    from smmd_lightning.report import write_report  # heavy; `--help` does without

    try:
        for folder in arguments.runs:
            print(write_report(folder, arguments.output, arguments.before))
    except (OSError, ValueError) as error:
        print(f"smmd-report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
