"""What each numeric loss adds to a training step.

    python -m benchmarks.loss_overhead

A step is forward, cross-entropy, backward and AdamW on 4 x 512 tokens of the tiny Qwen preset, its head widened by N
numbers. What a loss adds is the time of the objective with it less that without it, forward and backward, on the step's
own logits: on a shared machine whole steps differ by more than what is looked for. All in one process and in turn; each
round gives one ratio.

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
from torch import Tensor, nn

from benchmarks.harness import RESULTS, Clock, hardware, table, versions
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.losses import (
    DigitEntropyLoss,
    Dist2Loss,
    GaussianSmoothingLoss,
    MixCELoss,
    NTILLoss,
    NTLNumberLoss,
    NTLRegressionLoss,
    NTLWASLoss,
    NumericLoss,
    PlaceWeightedLoss,
    RAFTLoss,
    SMMDLoss,
    WholeNumberLoss,
)
from smmd_lightning.objective import NumericObjective
from smmd_lightning.types import IGNORE_INDEX
from smmd_lightning.vocabulary import NumericVocabulary

LIMIT = 0.02
"""Most that a loss may add to a step."""
STEP, CE = "step", "CE"
REPEATS = 5
"""Passes through the objective in a row, each round."""
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
    "DEL": DigitEntropyLoss,
    "RAFT": RAFTLoss,
    "NTL by number": NTLNumberLoss,
    "MixCE": MixCELoss,
    "Gaussian smoothing": GaussianSmoothingLoss,
    "whole number": WholeNumberLoss,
}


def passes(numbers: int, positions: int, rows: int = 4, length: int = 512) -> dict[str, Callable[[], object]]:
    """Makes what is timed: a whole step, and the objective's forward and backward pass of each variant.

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
    vocabulary = NumericVocabulary(range(first, first + numbers), range(numbers), group=3 if numbers == 1000 else 1)
    ids_BT = torch.randint(0, first, (rows, length))
    answer_B2K = torch.stack([torch.randint(first, first + numbers, (rows, positions)), ids_BT[:, :positions]], 2)
    ids_BT[:, -2 * positions :] = answer_B2K.flatten(1)
    labels_BT = torch.full_like(ids_BT, IGNORE_INDEX)
    labels_BT[:, -2 * positions :] = ids_BT[:, -2 * positions :]
    inputs = {"input_ids": ids_BT, "attention_mask": torch.ones_like(ids_BT)}
    optimizer = torch.optim.AdamW(backbone.parameters(), lr=1e-4)
    alone = NumericObjective()
    kept: list[Tensor] = []

    def keeping(logits_SV: Tensor, targets_S: Tensor) -> tuple[Tensor, ...]:
        kept[:] = [logits_SV.detach()]
        return (logits_SV.sum(),)

    backbone(inputs, labels_BT, keeping)
    logits_SV = kept[0].requires_grad_()

    def step() -> None:
        alone(backbone, inputs, labels_BT).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def scored(inputs: dict[str, Tensor], given_BT: Tensor, score: Callable[..., tuple[Tensor, ...]]) -> Any:
        given_S = given_BT[:, 1:][given_BT[:, 1:] != IGNORE_INDEX]
        return score(logits_SV, given_S)

    def objective(loss: NumericLoss | None) -> Callable[[], Tensor | None]:
        made = NumericObjective(loss, 0.3)
        made.bind(None if loss is None else vocabulary, first + numbers)

        def pass_() -> Tensor | None:
            logits_SV.grad = None
            made(scored, inputs, labels_BT).loss.backward()
            return logits_SV.grad

        return pass_

    return {STEP: step, CE: objective(None), **{name: objective(make()) for name, make in LOSSES.items()}}


def measure(timed: dict[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Runs everything in turn, each round in another order.

    Returns:
        By name: `seconds`, the median, and for the losses what they add as a share of the step, medians over rounds, by
        the clock (`wall`) and in processor time (`cpu`).
    """
    names = list(timed)
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-2, rounds):  # the first two warm up
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            repeats = 1 if name == STEP else REPEATS
            with Clock() as clock:
                for _ in range(repeats):
                    timed[name]()
            if number >= 0:
                wall[name].append(clock.seconds / repeats)
                cpu[name].append(clock.cpu / repeats)

    def added(seconds: dict[str, list[float]], name: str) -> float:
        triples = zip(seconds[name], seconds[CE], seconds[STEP], strict=True)
        return statistics.median((mine - base) / step for mine, base, step in triples)

    return {
        name: {
            "seconds": statistics.median(wall[name]),
            "wall": added(wall, name),
            "cpu": added(cpu, name),
        }
        for name in names
    }


def render(found: dict[str, dict[str, float]]) -> str:
    """The table of a case."""
    rows = [["CE: whole step", milliseconds(found[STEP]), "", "", ""], ["CE", milliseconds(found[CE]), "", "", ""]]
    for name in LOSSES:
        values = found[name]
        over = "over 2 %" if max(values["wall"], values["cpu"]) >= LIMIT else ""
        shares = (f"{100 * values[kind]:.2f} %" for kind in ("wall", "cpu"))
        rows.append([f"CE + {name}", milliseconds(values), *shares, over])
    return table(("objective", "forward and backward", "added to the step", "in processor time", ""), rows)


def share_at_scale(tokens: int = 128, numbers: int = 1000, width: int = 4096, inner: int = 11008) -> dict[str, float]:
    """Times SMMD's dense product beside one decoder block of a 7B model, every token of the batch a numeric target.

    The block is its seven projections alone, forward and backward, in float32; a 7B model has 32 of them.

    Returns:
        `loss` and `block` in seconds, medians of three, and `share`, the loss's share of 32 blocks.
    """
    block = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(4)])
    block.extend([nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)])
    block.append(nn.Linear(width, inner, bias=False))
    loss = SMMDLoss().bind(NumericVocabulary(range(numbers), range(numbers), group=3))
    hidden = torch.randn(tokens, width, requires_grad=True)
    logits = torch.randn(tokens, numbers, requires_grad=True)
    target = torch.arange(tokens) % numbers

    def seconds(pass_: Callable[[], Tensor]) -> float:
        taken = []
        for _ in range(3):
            with Clock() as clock:
                pass_().sum().backward()
            taken.append(clock.cpu)
        return statistics.median(taken)

    found = {"loss": seconds(lambda: loss(logits, target)), "block": seconds(lambda: block(hidden))}
    return {**found, "share": found["loss"] / (32 * found["block"])}


def milliseconds(values: dict[str, float]) -> str:
    """Seconds of a variant, as text."""
    return f"{1000 * values['seconds']:.2f} ms"


def main(argv: Sequence[str] | None = None) -> Path:
    """Measures and writes `results/loss_overhead.md`.

    Returns:
        The file.
    """
    parser = argparse.ArgumentParser(description="What each numeric loss adds to a training step.")
    parser.add_argument("--toy", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--rounds", type=int, default=None, help="rounds, at least 5 (21; toy: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result file")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    rounds = arguments.rounds or (5 if arguments.toy else 21)
    cases: list[dict[str, Any]] = [{"numbers": 20, "positions": 2, "rows": 2, "length": 16}]
    if not arguments.toy:
        cases = [{"numbers": n, "positions": k} for n in (10, 1000) for k in (2, 8, 32)]
    lines = ["# What each numeric loss adds to a training step", "", f"`{_command(arguments)}`", ""]
    lines += [f"Median of {rounds} rounds, one thread. {hardware()}; {versions()}.", ""]
    for case in cases:
        found = measure(passes(**case), rounds)
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
