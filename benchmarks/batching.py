"""Batching: what length groups and packed rows bring, on text of very different lengths.

    python -m benchmarks.batching --model smollm2-135m --gsm8k FOLDER

One epoch over the same samples, forward and backward pass at fixed weights, gradients added up. So all variants must
give the same loss and the same gradient, which is checked before a time counts.

Shape legend: T positions of a row.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.harness import Case, Clock, faster, gib, run, span, table


def epoch(case: Case, **settings: Any) -> dict[str, Any]:
    """Passes over all samples once."""
    import torch

    from datamodules import DrawnWordProblems, MathFiles, TextMathDataModule
    from smmd_lightning import NumericVocabulary, SMMDLoss
    from smmd_lightning.backbones import LanguageBackbone
    from smmd_lightning.loss_sums import StepCounts
    from smmd_lightning.objective import NumericObjective

    drawn = DrawnWordProblems(train_size=case["samples"])
    problems = MathFiles(f"{case['gsm8k']}/train.jsonl", fractions=(0.9, 0.1, 0.0)) if case["gsm8k"] else drawn
    module = TextMathDataModule(case["model"], problems, batch_size=8, limit=case["samples"], **settings)
    batches = list(module.train_dataloader())
    backbone = LanguageBackbone(case["model"], attention=case["attention"])
    backbone.load()
    objective = NumericObjective(SMMDLoss(), 0.3)
    objective.bind(NumericVocabulary.from_tokenizer(module.collator.tokenizer), backbone.head_rows)
    counts = StepCounts(*objective.count(torch.cat([batch.window_targets for batch in batches])).tolist())
    backbone.encode(batches[0].inputs)  # the check of packed rows is no part of the time
    total, positions = 0.0, 0
    with Clock() as clock:
        for batch in batches:
            loss = objective(backbone, batch.inputs, batch.labels, counts).loss
            loss.backward()
            total += loss.item()
            positions += batch.inputs["input_ids"].numel()
    gradients = [parameter.grad for parameter in backbone.parameters() if parameter.grad is not None]
    norm = torch.stack([gradient.double().norm() for gradient in gradients]).norm().item()
    return {"seconds": clock.seconds, "cpu": clock.cpu, "loss": total, "norm": norm, "positions": positions}


def padded(case: Case) -> dict[str, Any]:
    """Rows of a batch padded to its longest."""
    return epoch(case)


def grouped(case: Case) -> dict[str, Any]:
    """Batches of like length, padded."""
    return epoch(case, group_by_length=True)


def packed(case: Case) -> dict[str, Any]:
    """Rows of a batch behind each other, no padding."""
    return epoch(case, pack=True)


def grouped_and_packed(case: Case) -> dict[str, Any]:
    """Both."""
    return epoch(case, group_by_length=True, pack=True)


VARIANTS = {"padded": padded, "grouped": grouped, "packed": packed, "grouped_and_packed": grouped_and_packed}


def cases(arguments: argparse.Namespace) -> list[Case]:
    """One set of samples."""
    if arguments.toy:
        return [{"model": "tiny:llama", "samples": 16, "gsm8k": None, "attention": "sdpa"}]
    return [{"model": arguments.model, "samples": 24, "gsm8k": arguments.gsm8k, "attention": "sdpa"}]


def difference(measured: dict[str, Any], plain: dict[str, Any]) -> float:
    """Largest relative difference of loss and gradient's norm."""
    return max(abs(measured[key] - plain[key]) / abs(plain[key]) for key in ("loss", "norm"))


def check(found: dict[str, Any]) -> None:
    """Compares each variant with padded batches.

    Raises:
        RuntimeError: Loss or gradient differ.
    """
    for name in VARIANTS:
        if (off := difference(found[name], found["padded"])) > 1e-5:
            raise RuntimeError(f"{name}: loss or gradient differ from the padded batches' by {off:.2g}.")


def render(finished: list[dict[str, Any]]) -> str:
    """One row a variant."""
    rows = []
    for found in finished:
        case, plain = found["case"], found["padded"]
        for name, measured in ((name, found[name]) for name in VARIANTS):
            rows.append(
                [
                    name.replace("_", " "),
                    measured["positions"],
                    span(measured),
                    f"{case['samples'] / measured['median']:.2f}",
                    faster(measured, plain),
                    gib(measured["peak"]),
                    f"{difference(measured, plain):.1e}",
                ]
            )
    head = ["batches of 8", "positions", "an epoch", "samples/s", "faster than padded", "peak", "largest difference"]
    return table(head, rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds `--model` and `--gsm8k`."""
    parser.add_argument("--model", default="smollm2-135m", help="model to train")
    parser.add_argument("--gsm8k", help="folder with GSM8K's train.jsonl; word problems are drawn without it")


if __name__ == "__main__":
    run("batching", __doc__, VARIANTS, cases, render, options, check)
