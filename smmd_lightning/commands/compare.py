"""The command `smmd-compare`: runs a grid of tasks, losses and seeds, and reports what differs.

One real example::

    $ smmd-compare --config configs/compare/quick.yaml --out comparisons/quick --jobs 2
    …
    comparisons/quick/report.html
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from smmd_lightning.checkpoints.atomic import close_umask


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not finished yet, then writes the report.

    Args:
        argv: Arguments after the program's name; those of the process when left out.

    Returns:
        Exit status: 0; 1 if a run failed or the grid is wrong, with a message on stderr; 3 if runs wait for others, of
        another shard.
    """
    close_umask()
    parser = argparse.ArgumentParser(
        prog="smmd-compare", description="Compare losses over tasks and seeds; run it again to go on where it stopped."
    )
    parser.add_argument("--config", metavar="GRID", required=True, help="YAML file of the grid")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the runs and the report")
    parser.add_argument("--jobs", metavar="N", type=int, help="runs side by side; unless given 1, or one per GPU")
    parser.add_argument("--gpus", metavar="0,1,…", default="", help="GPUs to spread the runs over")
    parser.add_argument(
        "--shard", metavar="I/N", type=shard, default=(1, 1), help="only the I-th of N parts of the runs"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the runs and how long they may take, start none")
    parser.add_argument(
        "--report-only", action="store_true", help="write the report of what is finished, start nothing"
    )
    arguments = parser.parse_args(argv)
    if find_spec("scipy") is None:  # found out before the first run, not after the last
        print("smmd-compare: scipy is not installed (pip install 'smmd_lightning[compare]').", file=sys.stderr)
        return 1
    from smmd_lightning.compare.comparison import Comparison  # heavy; `--help` does without
    from smmd_lightning.compare.running import Slots

    gpus = [gpu for gpu in arguments.gpus.split(",") if gpu]
    try:
        jobs = arguments.jobs if arguments.jobs is not None else max(1, len(gpus))
        comparison = Comparison(arguments.config, arguments.out, arguments.shard)
        if arguments.dry_run:
            print("\n".join(comparison.listing(jobs)))
            return 0
        failures, waiting = ([], 0) if arguments.report_only else comparison.run(Slots(jobs, gpus))
        for file in comparison.report():
            print(file)
    except (OSError, ValueError) as error:
        print(f"smmd-compare: {error}", file=sys.stderr)
        return 1
    for failure in failures:
        print(f"failed: {failure.run.title}: {failure.last_line} ({failure.log})", file=sys.stderr)
    if waiting:
        print(
            f"{waiting} runs wait until tuning is finished, which other shards or failed runs are part of; "
            "run this again then.",
            file=sys.stderr,
        )
    return 1 if failures else 3 if waiting else 0


def shard(text: str) -> tuple[int, int]:
    """Reads "2/8".

    >>> shard("2/8")
    (2, 8)
    """
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise argparse.ArgumentTypeError(f"a shard is I/N with I from 1 to N, as in 2/8; got {text!r}")
    return int(first), int(second)


if __name__ == "__main__":
    sys.exit(main())
