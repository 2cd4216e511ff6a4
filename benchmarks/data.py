"""Data: samples per second of each data module, and how long the quickstart waits for its loader.

    python -m benchmarks.data

A sample here is drawn (or read), rendered through the chat template, tokenised, masked and collated. There is no peer:
the figures say how many samples a second the data can feed. The repetitions of one module share a process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, run, table

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = "quickstart: loader wait"
DRAWING = "drawing alone: clocks, varied, 224 pixels"


def modules(gsm8k: str | None) -> dict[str, Any]:
    """Makers of the data modules, by name."""
    from datamodules import (
        ChartDataModule,
        ClockDataModule,
        DrawnArithmetic,
        DrawnCharts,
        DrawnClocks,
        DrawnWordProblems,
        MathFiles,
        MixedDataModule,
        Part,
        TextMathDataModule,
    )

    vision, text = "tiny:qwen2.5-vl", "tiny:qwen2"
    plain = DrawnClocks(style="plain", image_size=64, train_size=100_000)
    made = {
        "clocks, plain, 64 pixels": lambda **common: ClockDataModule(vision, plain, **common),
        "clocks, varied, 224 pixels": lambda **common: ClockDataModule(
            vision, DrawnClocks(image_size=224, train_size=100_000), **common
        ),
        "charts": lambda **common: ChartDataModule(vision, DrawnCharts(train_size=100_000), **common),
        "arithmetic": lambda **common: TextMathDataModule(text, DrawnArithmetic(train_size=100_000), **common),
        "word problems": lambda **common: TextMathDataModule(text, DrawnWordProblems(train_size=100_000), **common),
        "clocks and arithmetic": lambda **common: MixedDataModule(
            vision, [Part(plain), Part(DrawnArithmetic(train_size=100_000))], **common
        ),
    }
    if gsm8k is not None:
        files = MathFiles(f"{gsm8k}/train.jsonl", fractions=(0.9, 0.1, 0.0))
        made["GSM8K from files"] = lambda **common: TextMathDataModule(text, files, **common)
    return made


def feed(case: Case) -> dict[str, Any]:
    """Samples a second by workers, after the first batches; or the waiting share of the quickstart's time."""
    if case["module"] == QUICKSTART:
        return loader_wait(case["steps"])
    if case["module"] == DRAWING:
        return drawing(case)
    rates: dict[str, list[float]] = {}
    for workers in (0, 1, 2):
        module = modules(case["gsm8k"])[case["module"]](batch_size=8, num_workers=workers)
        batches = iter(module.train_dataloader())
        for _ in range(2 + 2 * workers):  # workers start, caches fill
            next(batches)
        rates[str(workers)] = []
        for _ in range(case["repetitions"]):
            start = time.perf_counter()
            samples = sum(len(batch) for batch in islice(batches, case["batches"]))
            rates[str(workers)].append(samples / (time.perf_counter() - start))
    return {"seconds": 1 / statistics.median(rates["0"]), "rates": rates}


def drawing(case: Case) -> dict[str, Any]:
    """Faces a second that one process draws, nothing else done to them."""
    from datamodules.clock import DrawnClocks
    from smmd_lightning.types import SampleKey

    source = DrawnClocks(train_size=100_000, style="varied", image_size=224).open("train")
    rates = []
    for number in range(case["repetitions"] + 1):
        start = time.perf_counter()
        for index in range(case["batches"] * 8):
            source.example(SampleKey(number, index))
        rates.append(case["batches"] * 8 / (time.perf_counter() - start))
    return {"seconds": 1 / statistics.median(rates[1:]), "rates": {"0": rates[1:]}}  # fonts load in the first


def loader_wait(steps: int) -> dict[str, Any]:
    """Trains the quickstart for some steps; returns which share of the time it waited for data."""
    from smmd_lightning.callbacks.throughput import Throughput
    from smmd_lightning.cli import main

    with tempfile.TemporaryDirectory() as folder:
        config = ROOT / "configs" / "experiment" / "quickstart.yaml"
        options = {
            "run_dir": f"{folder}/run", "trainer.max_steps": steps, "trainer.limit_val_batches": 0,
            "trainer.log_every_n_steps": steps // 2, "trainer.enable_progress_bar": "false",
        }  # fmt: skip
        flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        sys.stdout = sys.stderr
        line = main(["fit", "--config", str(config), "--trainer.val_check_interval", "null", *flags])
        sys.stdout = sys.__stdout__
    latest = next(callback.latest for callback in line.trainer.callbacks if isinstance(callback, Throughput))
    return {"seconds": 1 / latest["speed/samples_per_second"], "wait": latest["speed/loader_wait"]}


def cases(arguments: argparse.Namespace) -> list[Case]:
    """Each module, then the quickstart."""
    names = list(modules(arguments.gsm8k))
    if arguments.toy:
        return [{"module": name, "batches": 1, "repetitions": 1, "gsm8k": None} for name in (names[0], DRAWING)]
    common = {"batches": 25, "repetitions": arguments.runs or 5, "gsm8k": arguments.gsm8k, "runs": 1}
    return [*({"module": name, **common} for name in [*names, DRAWING]), {"module": QUICKSTART, "steps": 80}]


def render(finished: list[dict[str, Any]]) -> str:
    """Samples a second by module and workers."""
    rows = []
    for found in finished:
        measured = found["ours"]
        if "wait" in measured:
            rows.append([found["case"]["module"], "", f"{measured['wait']:.2%} of the step", ""])
            continue
        each = [f"{statistics.median(r):.0f} ({min(r):.0f}–{max(r):.0f})" for r in measured["rates"].values()]
        rows.append([found["case"]["module"], *each, *[""] * (3 - len(each))])
    return table(["samples a second", "0 workers", "1 worker", "2 workers"], rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds `--gsm8k`."""
    parser.add_argument("--gsm8k", help="folder with GSM8K's train.jsonl")


if __name__ == "__main__":
    run("data", __doc__, {"ours": feed}, cases, render, options)
