"""`smmd-eval`: the number of a published benchmark, by its own rule and prompts.

Unusual: a question that cannot be read ends the evaluation, since the number is of all questions or of none.

    smmd-eval measurebench --model runs/a/checkpoints/best.ckpt --data MeasureBench
    smmd-eval chartqapro --model Qwen/Qwen2.5-VL-3B-Instruct --data ChartQAPro --out eval/qwen
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smmd_lightning.checkpoints.atomic import close_umask

if TYPE_CHECKING:
    from smmd_lightning.module import SMMDModule

MOST_TOKENS = {"measurebench": 512, "clockbench": 256}
"""Most tokens of an answer where a benchmark asks for more than a word."""


def evaluate(
    benchmark: str,
    model: str,
    data: str,
    out: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    batch_size: int = 8,
    max_new_tokens: int | None = None,
    accelerator: str = "auto",
) -> dict[str, float]:
    """Asks a model a benchmark's questions.

    Args:
        benchmark: Its name, see `datamodules.published.BENCHMARKS`.
        model: A checkpoint of a run, or a model folder or hub name.
        data: Folder of the benchmark.
        out: Folder for `predictions.jsonl`, `metrics.json` and the report.
        split: Split, as the benchmark calls it. None: the one that papers report.
        limit: Most questions; the number is then no benchmark's.
        batch_size: Questions at a time.
        max_new_tokens: Most tokens of an answer. None: as many as the benchmark's answers need.
        accelerator: As Lightning's trainer takes it.

    Returns:
        All metrics by name, without `test/`.

    Raises:
        ValueError: Files, settings or the output folder are not as they should be; nothing is loaded then.
    """
    from lightning.pytorch import Trainer

    from smmd_lightning.callbacks.results import ResultsWriter

    if (Path(out) / "predictions.jsonl").exists():
        raise ValueError(f"{out} holds predictions already. Give another folder with --out.")
    module = _module(model)
    module.max_new_tokens = max_new_tokens or MOST_TOKENS.get(benchmark, 64)
    # The library knows nothing of the data modules; whoever evaluates a benchmark needs both.
    questions = import_module("datamodules").PublishedDataModule(
        module.backbone.path, benchmark, data, split, batch_size=batch_size, limit=limit
    )
    len(questions.source("test"))  # what is wrong with the files is said before weights load
    trainer = Trainer(
        accelerator=accelerator,
        devices=1,
        logger=False,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        default_root_dir=str(out),
        callbacks=[ResultsWriter()],
    )
    Path(out).mkdir(parents=True, exist_ok=True)
    trainer.test(module, questions, verbose=False)
    return {name.removeprefix("test/"): float(value) for name, value in trainer.callback_metrics.items()}


def _module(model: str) -> SMMDModule:
    from smmd_lightning.backbones.vision_language import VisionLanguageBackbone
    from smmd_lightning.checkpoints.sharded import META
    from smmd_lightning.module import SMMDModule

    path = Path(model)
    if path.is_file() or (path / META).is_file():
        return SMMDModule.load_from_checkpoint(path, map_location="cpu")
    return SMMDModule(VisionLanguageBackbone(model))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments after the program's name; those of the process when left out.

    Returns:
        Exit status: 0, or 1 with a message on stderr.
    """
    close_umask()
    names: Any = import_module("datamodules.published.layouts").BENCHMARKS
    parser = argparse.ArgumentParser(
        prog="smmd-eval", description="Test a model on a published benchmark, by its own rule and prompts."
    )
    parser.add_argument("benchmark", choices=list(names))
    parser.add_argument("--model", required=True, metavar="PATH", help="checkpoint of a run, model folder or hub name")
    parser.add_argument("--data", required=True, metavar="FOLDER", help="the benchmark's files as distributed")
    parser.add_argument("--split", help="as the benchmark calls it; left out: the one that papers report")
    parser.add_argument("--out", metavar="FOLDER", help="left out: eval/BENCHMARK")
    parser.add_argument("--limit", type=int, metavar="N", help="most questions; no number for a paper then")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--max-new-tokens", type=int, metavar="N", help="most tokens of an answer")
    parser.add_argument("--accelerator", default="auto", help="auto, gpu or cpu")
    chosen = parser.parse_args(argv)
    try:
        values = evaluate(
            chosen.benchmark,
            chosen.model,
            chosen.data,
            chosen.out or f"eval/{chosen.benchmark}",
            split=chosen.split,
            limit=chosen.limit,
            batch_size=chosen.batch_size,
            max_new_tokens=chosen.max_new_tokens,
            accelerator=chosen.accelerator,
        )
    except (OSError, ValueError, RuntimeError) as error:
        print(f"smmd-eval: {error}", file=sys.stderr)
        return 1
    from smmd_lightning.metrics import metrics_for

    task = "chart" if chosen.benchmark == "chartqa" else chosen.benchmark
    headline = metrics_for(task).headline
    print(f"{chosen.benchmark}: {headline} {100 * values[headline]:.1f} % of {values['samples']:.0f} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
