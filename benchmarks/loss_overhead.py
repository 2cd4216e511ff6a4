"""What each numeric loss adds to a training step.

    python -m benchmarks.loss_overhead

A step is forward, loss, backward and AdamW on 4 x 512 tokens of the tiny Qwen preset, its head widened by N numbers;
cross-entropy alone against cross-entropy plus one loss, with the same model, batch and optimizer. Unlike the other
benchmarks all variants run in one process: a difference of a hundredth is smaller than what two processes differ by.
They take turns step by step, and each round gives one ratio to the cross-entropy of the same round.

A small model is hard on the losses: their cost depends on positions and numbers alone, the step's on the model.

Shape legend: B rows, T positions, K numeric target positions, N numeric tokens.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import RESULTS, Clock, hardware, table, versions
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.losses import (
    Dist2Loss,
    GaussianSmoothingLoss,
    NTILLoss,
    NTLRegressionLoss,
    NTLWASLoss,
    NumericLoss,
    PlaceWeightedLoss,
    SMMDLoss,
)
from smmd_lightning.numbers import NumericVocabulary
from smmd_lightning.objective import NumericObjective
from smmd_lightning.types import IGNORE_INDEX

LIMIT = 0.02
"""Most that a loss may add to a step."""
CE = "CE"
LOSSES: dict[str, Callable[[], NumericLoss]] = {
    "SMMD": SMMDLoss,
    "MMD only": lambda: SMMDLoss(term="mmd"),
    "smooth only": lambda: SMMDLoss(term="smooth"),
    "SMMD, place weights": lambda: PlaceWeightedLoss(SMMDLoss()),
    "NTL-WAS": NTLWASLoss,
    "NTL-WAS, reweighed": lambda: NTLWASLoss(reweigh=True),
    "NTL-MSE": NTLRegressionLoss,
    "NTIL": NTILLoss,
    "DIST2": Dist2Loss,
    "Gaussian smoothing": GaussianSmoothingLoss,
}


def steps(numbers: int, positions: int, rows: int = 4, length: int = 512) -> dict[str, Callable[[], None]]:
    """Makes a training step of each variant, on one model.

    Args:
        numbers: N.
        positions: Numeric targets of each row; as many other targets stand between them.
        rows: B.
        length: T.
    """
    torch.manual_seed(0)
    backbone = LanguageBackbone("tiny:qwen2")
    backbone.load()
    first = backbone.model.get_output_embeddings().weight.shape[0]
    backbone.model.resize_token_embeddings(first + numbers, mean_resizing=False)
    vocabulary = NumericVocabulary(range(first, first + numbers), range(numbers))
    ids_BT = torch.randint(0, first, (rows, length))
    answer_B2K = torch.stack([torch.randint(first, first + numbers, (rows, positions)), ids_BT[:, :positions]], 2)
    ids_BT[:, -2 * positions :] = answer_B2K.flatten(1)
    labels_BT = torch.full_like(ids_BT, IGNORE_INDEX)
    labels_BT[:, -2 * positions :] = ids_BT[:, -2 * positions :]
    inputs = {"input_ids": ids_BT, "attention_mask": torch.ones_like(ids_BT)}
    optimizer = torch.optim.AdamW(backbone.parameters(), lr=1e-4)

    def step_of(loss: NumericLoss | None) -> Callable[[], None]:
        objective = NumericObjective(loss, 0.3)
        objective.bind(vocabulary, first + numbers)

        def step() -> None:
            objective(backbone, inputs, labels_BT).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return {CE: step_of(None), **{name: step_of(make()) for name, make in LOSSES.items()}}


def measure(variants: dict[str, Callable[[], None]], rounds: int) -> dict[str, dict[str, float]]:
    """Runs all variants in turn, each round in another order.

    Returns:
        By variant: median seconds of a step, and medians over rounds of its ratio to cross-entropy alone, by the clock
        (`wall`) and in processor time (`cpu`).
    """
    names = list(variants)
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-2, rounds):  # the first two warm up
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            with Clock() as clock:
                variants[name]()
            if number >= 0:
                wall[name].append(clock.seconds)
                cpu[name].append(clock.cpu)
    return {
        name: {
            "seconds": statistics.median(wall[name]),
            "wall": statistics.median(mine / base for mine, base in zip(wall[name], wall[CE], strict=True)),
            "cpu": statistics.median(mine / base for mine, base in zip(cpu[name], cpu[CE], strict=True)),
        }
        for name in names
    }


def render(found: dict[str, dict[str, float]]) -> str:
    """The table of a case."""
    rows = []
    for name, values in found.items():
        over = "" if values["cpu"] - 1 < LIMIT else "over 2 %"
        added = "–" if name == CE else f"{100 * (values['wall'] - 1):+.1f} %"
        processor = "–" if name == CE else f"{100 * (values['cpu'] - 1):+.1f} %"
        rows.append([name, f"{1000 * values['seconds']:.1f} ms", added, processor, over])
    return table(("loss", "step", "added", "added, processor time", ""), rows)


def main(argv: Sequence[str] | None = None) -> Path:
    """Measures and writes `results/loss_overhead.md`.

    Returns:
        The file.
    """
    parser = argparse.ArgumentParser(description="What each numeric loss adds to a training step.")
    parser.add_argument("--toy", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--rounds", type=int, default=None, help="rounds, at least 5 (41; toy: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result file")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    rounds = arguments.rounds or (5 if arguments.toy else 41)
    cases: list[dict[str, Any]] = [{"numbers": 20, "positions": 2, "rows": 2, "length": 16}]
    if not arguments.toy:
        cases = [{"numbers": n, "positions": k} for n in (10, 1000) for k in (2, 8, 32)]
    lines = ["# What each numeric loss adds to a training step", "", f"`{_command(arguments)}`", ""]
    lines += [f"Median of {rounds} rounds, one thread. {hardware()}; {versions()}.", ""]
    for case in cases:
        found = measure(steps(**case), rounds)
        rows, length, numbers = case.get("rows", 4), case.get("length", 512), case["positions"]
        title = f"N = {case['numbers']}, {rows} x {length} tokens, {numbers} numbers a row (K = {rows * numbers})"
        lines += [f"## {title}", "", render(found), ""]
        print("\n".join(lines[-4:]), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    file: Path = arguments.out / "loss_overhead.md"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def _command(arguments: argparse.Namespace) -> str:
    given = [f"--rounds {arguments.rounds}"] * bool(arguments.rounds) + ["--toy"] * arguments.toy
    return " ".join(["python -m benchmarks.loss_overhead", *given])


if __name__ == "__main__":
    print(main())
