"""Runs variants of one task in turn, each in a process of its own, and writes what came out.

Unusual: nothing is measured in the process that compares. Every run is a fresh child, so its peak memory (`VmHWM`) is
that of a whole process that did this and nothing else; and the variants alternate, so that a slow minute of a shared
machine hits all of them. A child prints one JSON object, the last line of its output, with at least `seconds`;
processor seconds (`cpu`) say more where other jobs run on the same cores.

One real example, the whole of a benchmark's file but its variants::

    if __name__ == "__main__":
        run("numeric_loss", __doc__, {"ours": ours, "peer": peer}, cases, render)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Variant = Callable[[Case], dict[str, Any]]

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("torch", "transformers", "lightning", "peft", "trl", "ntloss", "liger-kernel", "triton")


def peak_bytes() -> int:
    """Most memory this process has held at one time, in bytes: on a GPU that of its allocator, else resident memory."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count what the parent held before it started this program
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def hardware() -> str:
    """One line about the machine."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    line = f"{model}, {os.cpu_count()} cores"
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        line += f", {torch.cuda.get_device_name()}"
    return line


def versions() -> str:
    """Versions of what matters here."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


class Clock:
    """Wall and processor seconds of what runs inside; waits for the GPU at both ends.

    Example:
        >>> with Clock() as clock:
        ...     _ = sum(range(10))
        >>> clock.seconds > 0
        True
    """

    def __enter__(self) -> Clock:
        _wait_for_gpu()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        _wait_for_gpu()
        self.seconds, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu


def _wait_for_gpu() -> None:
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def run(
    name: str,
    title: str,
    variants: Mapping[str, Variant],
    cases: Callable[[argparse.Namespace], Sequence[Case]],
    render: Callable[[list[dict[str, Any]]], str],
    options: Callable[[argparse.ArgumentParser], None] | None = None,
    check: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """The command line of a benchmark.

    Args:
        name: Of the result files.
        title: The benchmark's docstring; its first line heads the result.
        variants: What is compared; each is called in a child with a case and returns what it measured.
        cases: The cases for the parsed options (`--toy` among them). A case may hold `variants`, the names that run
            on it (all), and `runs`, how often (as `--runs` says).
        render: Markdown of the finished cases; each holds `case` and, by variant, `median` seconds, `least`, `most`,
            `peak` bytes and the other values of its first run.
        options: Adds options of the benchmark's own.
        check: Called with each finished case; raises where the variants did not compute the same.
    """
    parser = argparse.ArgumentParser(description=title.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--runs", type=int, default=None, help="runs of each variant (5; toy: 1)")
    parser.add_argument("--threads", type=int, default=2, help="torch's threads")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    parser.add_argument("--name", default=name, help="name of the result files")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the cases to run, from 0; all without it")
    parser.add_argument("--prefix", default="", help="command in front of each run's, such as one that waits for quiet")
    parser.add_argument("--child", nargs=2, metavar=("VARIANT", "CASE"), help=argparse.SUPPRESS)
    if options is not None:
        options(parser)
    arguments = parser.parse_args()
    if arguments.child:
        variant, case = arguments.child
        measured = variants[variant](json.loads(case))
        print(json.dumps({"peak": peak_bytes(), **measured}))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    runs = arguments.runs or (1 if arguments.toy else 5)
    command = f"python -m benchmarks.{Path(sys.argv[0]).stem} {_told(sys.argv[1:])}".strip()
    finished = []
    for number, case in enumerate(cases(arguments)):
        if arguments.only is not None and number not in arguments.only:
            continue
        chosen = case.pop("variants", list(variants))
        finished.append(_compare(chosen, case, case.pop("runs", runs), arguments))
        if check is not None:
            check(finished[-1])
        _write(arguments, title.splitlines()[0], command, runs, finished, render)  # so that a broken-off run keeps most
    print(arguments.out / f"{arguments.name}.md")


def _compare(chosen: Sequence[str], case: Case, runs: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs each variant `runs` times, in turn."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for number in range(runs):
        for name in chosen if number % 2 == 0 else reversed(chosen):
            found[name].append(_child(name, case, arguments))
            print(f"{case} {name} {number + 1}/{runs}: {_shown(found[name][-1])}", file=sys.stderr, flush=True)
    return {"case": case, **{name: _summary(measured) for name, measured in found.items()}}


def _child(name: str, case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(arguments.threads),
        "MKL_NUM_THREADS": str(arguments.threads),
        "OMP_WAIT_POLICY": "passive",  # threads that spin would count as processor time
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(RESULTS.parent.parent), os.environ.get("PYTHONPATH", "")]),
    }
    own = [*sys.argv[1:], "--child", name, json.dumps(case)]
    command = [*shlex.split(arguments.prefix), sys.executable, sys.argv[0], *own]
    made = subprocess.run(command, env=environment, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"{name} failed on {case}:\n{made.stdout[-2000:]}\n{made.stderr[-4000:]}")
    return json.loads(made.stdout.splitlines()[-1])


def _summary(measured: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = [one["seconds"] for one in measured]
    return {
        **measured[0],
        "median": statistics.median(seconds),
        "least": min(seconds),
        "most": max(seconds),
        "peak": statistics.median(one["peak"] for one in measured),
        "all_seconds": seconds,
        **({"cpu": statistics.median(one["cpu"] for one in measured)} if "cpu" in measured[0] else {}),
    }


def _shown(measured: dict[str, Any]) -> str:
    return f"{measured['seconds']:.4g} s, {measured['peak'] / 2**30:.2f} GiB"


def _told(given: Sequence[str]) -> str:
    """The options as they are worth telling: without this machine's paths."""
    kept = list(given)
    for name in ("--prefix", "--out"):
        while name in kept:
            del kept[kept.index(name) : kept.index(name) + 2]
    return shlex.join("FOLDER" if part.startswith("/") else part for part in kept)


def _write(
    arguments: argparse.Namespace, title: str, command: str, runs: int, finished: list[dict[str, Any]], render: Any
) -> None:
    path = arguments.out / arguments.name
    finished = [{**found, "case": {k: _without_path(v) for k, v in found["case"].items()}} for found in finished]
    about = {"command": command, "date": str(date.today()), "hardware": hardware(), "versions": versions()}
    within = any({"rounds", "repetitions"} & set(found["case"]) for found in finished)
    lines = [
        f"# {title}",
        "",
        f"`{command}`",
        "",
        f"Median of {runs} runs, {'in one process' if within else 'each in a fresh process'}, variants in turn, torch "
        f"threads: {arguments.threads}. "
        f"{about['date']}, {about['hardware']}; {about['versions']}.",
        "",
        render(finished),
        "",
    ]
    path.with_suffix(".md").write_text("\n".join(lines), encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps({**about, "cases": finished}, indent=1) + "\n", encoding="utf-8")


def _without_path(value: Any) -> Any:
    return "FOLDER" if isinstance(value, str) and value.startswith("/") else value


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def gib(count: float) -> str:
    """Bytes as GiB with two places."""
    return f"{count / 2**30:.2f} GiB"


def faster(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """How many times less time the first takes: by the clock, and in processor time where that was measured."""
    wall = f"{theirs['median'] / mine['median']:.2f} x"
    return f"{wall} (processor {theirs['cpu'] / max(mine['cpu'], 1e-9):.2f} x)" if "cpu" in mine else wall


def span(summary: Mapping[str, Any], scale: float = 1.0, unit: str = "s") -> str:
    """Median and range of a variant's seconds."""
    median, least, most = (summary[name] * scale for name in ("median", "least", "most"))
    return f"{median:.3g} {unit} ({least:.3g}–{most:.3g})"
