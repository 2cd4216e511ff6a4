"""Head and loss: ours, at supervised positions only, against full logits with the published loss.

    python -m benchmarks.head_and_loss            # the targets, on this machine's CPU
    python -m benchmarks.head_and_loss --curves   # growth with supervised tokens, sequence length and vocabulary

Forward and backward pass of a head of Qwen's size (151,936 x 896) on 4 rows of 512 positions. Both get the same hidden
states, weights and labels; loss and gradients must agree before a time counts.

Shape legend: B rows, T positions, V rows of the head, D hidden size, N numeric tokens, S supervised positions.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import Case, Clock, faster, gib, run, span, table
from benchmarks.published_smmd import full_logits_loss
from smmd_lightning import IGNORE_INDEX, NumericVocabulary, SMMDLoss
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.objective import NumericObjective

QWEN: Case = {"rows": 4, "length": 512, "vocabulary": 151_936, "hidden": 896, "numbers": 10, "dtype": "float32"}
LLAMA3: Case = {**QWEN, "vocabulary": 128_256, "numbers": 1000}
TOY: Case = {"rows": 2, "length": 24, "vocabulary": 1031, "hidden": 16, "numbers": 10, "dtype": "float32"}
WEIGHT = 0.3


class HeadAlone(LanguageBackbone):
    """A backbone whose hidden states are given: what is left is our path from there to the loss.

    Args:
        weight_VD: The head.
        head_chunk: As in `Backbone`.
    """

    def __init__(self, weight_VD: Tensor, head_chunk: int = 2048) -> None:
        super().__init__("head", head_chunk=head_chunk)
        self.weight = torch.nn.Parameter(weight_VD)

    def encode(self, inputs: dict[str, Tensor]) -> Tensor:
        """The hidden states, as they are."""
        return inputs["hidden_BTD"]

    def head(self, hidden_SD: Tensor) -> Tensor:
        """One matrix product."""
        return hidden_SD @ self.weight.T


def material(case: Case, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, NumericVocabulary]:
    """Hidden states, head, labels (half of the targets numeric) and vocabulary of a case, the same on every call."""
    generator = torch.Generator().manual_seed(0)
    dtype = getattr(torch, case["dtype"])
    hidden_BTD = torch.randn(case["rows"], case["length"], case["hidden"], generator=generator)
    weight_VD = torch.randn(case["vocabulary"], case["hidden"], generator=generator) / case["hidden"] ** 0.5
    ids = range(5, 5 + case["numbers"])
    labels_BT = torch.full((case["rows"], case["length"]), IGNORE_INDEX)
    shape = (case["rows"], case["supervised"])
    targets = torch.randint(0, case["vocabulary"], shape, generator=generator)
    numbers = torch.randint(ids.start, ids.stop, shape, generator=generator)
    targets[:, ::2] = numbers[:, ::2]
    labels_BT[:, case["length"] - case["supervised"] :] = targets
    vocabulary = NumericVocabulary(token_ids=ids, values=range(case["numbers"]))
    hidden_BTD, weight_VD = hidden_BTD.to(device, dtype), weight_VD.to(device, dtype)
    return hidden_BTD.requires_grad_(), weight_VD, labels_BT.to(device), vocabulary


def ours(case: Case) -> dict[str, Any]:
    """`Backbone.forward` and `NumericObjective`."""
    hidden_BTD, weight_VD, labels_BT, vocabulary = material(case, case.get("device", "cpu"))
    backbone = HeadAlone(weight_VD)
    numeric_loss = SMMDLoss() if case.get("numeric", True) else None
    objective = NumericObjective(numeric_loss, WEIGHT)
    objective.bind(vocabulary, case["vocabulary"])
    objective.to(weight_VD.device)

    def loss() -> Tensor:
        return objective(backbone, {"hidden_BTD": hidden_BTD}, labels_BT).loss

    return timed(case, loss, hidden_BTD, backbone.weight)


def full_logits(case: Case) -> dict[str, Any]:
    """The stock path: logits everywhere, float32 cross-entropy, SMMD on them."""
    hidden_BTD, weight_VD, labels_BT, vocabulary = material(case, case.get("device", "cpu"))
    weight_VD.requires_grad_()
    ids_N, values_N = vocabulary.token_ids.to(weight_VD.device), vocabulary.values.float().to(weight_VD.device)
    weight = WEIGHT if case.get("numeric", True) else 0.0

    def loss() -> Tensor:
        return full_logits_loss(hidden_BTD @ weight_VD.T, labels_BT, ids_N, values_N, weight)

    return timed(case, loss, hidden_BTD, weight_VD)


def timed(case: Case, loss: Any, hidden_BTD: Tensor, weight_VD: Tensor) -> dict[str, Any]:
    """Times forward and backward passes; returns loss and gradients' norms and samples too."""
    seconds, processor = [], []
    for _ in range(case.get("passes", 1) + case.get("warm_up", 0)):
        hidden_BTD.grad = weight_VD.grad = None
        with Clock() as clock:
            value = loss()
            value.backward()
        seconds.append(clock.seconds)
        processor.append(clock.cpu)
    kept = slice(case.get("warm_up", 0), None)
    assert hidden_BTD.grad is not None
    assert weight_VD.grad is not None
    measured: dict[str, Any] = {
        "seconds": statistics.mean(seconds[kept]),
        "cpu": statistics.mean(processor[kept]),
        "loss": value.item(),
    }
    places = torch.linspace(0, 1, 64)
    for name, gradient in (("hidden", hidden_BTD.grad), ("weight", weight_VD.grad)):
        flat = gradient.detach().flatten()
        measured[f"{name}_norm"] = torch.linalg.vector_norm(flat, dtype=torch.float32).item()
        supervised = flat[-min(len(flat), case["hidden"] * 4) :] if name == "hidden" else flat[: case["hidden"] * 64]
        index = (places * (len(supervised) - 1)).long().to(flat.device)
        measured[f"{name}_sample"] = supervised[index].float().tolist()
    return measured


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Largest relative difference of loss, gradient norms and sampled gradient entries (relative to their largest)."""
    found = [
        abs(one[name] - other[name]) / max(abs(other[name]), 1e-30) for name in ("loss", "hidden_norm", "weight_norm")
    ]
    for name in ("hidden_sample", "weight_sample"):
        mine, theirs = torch.tensor(one[name]), torch.tensor(other[name])
        found.append(((mine - theirs).abs().max() / theirs.abs().max().clamp_min(1e-30)).item())
    return max(found)


TOLERANCE = {"float32": 1e-5, "bfloat16": 5e-2}
"""Largest difference that counts as equal; in bfloat16 the logits themselves are rounded."""


def check(found: dict[str, Any]) -> None:
    """Refuses times of variants that do not agree with full logits, where these were made.

    Raises:
        RuntimeError: Loss or gradients differ by more than rounding.
    """
    case = found["case"]
    for name, measured in found.items():
        if name in ("case", "full_logits") or "full_logits" not in found:
            continue
        if (largest := difference(measured, found["full_logits"])) > TOLERANCE[case["dtype"]]:
            raise RuntimeError(f"{name} on {case}: loss or gradients differ from full logits by {largest:.2g}.")


def cases(arguments: argparse.Namespace) -> list[Case]:
    """The table's cases, or those of the growth curves."""
    if arguments.toy:
        small = [{**TOY, "supervised": supervised} for supervised in (3, 12)]
        return [*small, {**TOY, "numbers": 1000, "supervised": 12}]
    if arguments.curves:
        base: Case = {**QWEN, "vocabulary": 32_768, "hidden": 576, "supervised": 16, "passes": 3, "warm_up": 1}
        return [
            *({**base, "supervised": count, "variants": ["ours"]} for count in (8, 32, 128, 448)),
            *({**base, "length": length, "variants": ["ours"]} for length in (128, 256, 1024)),
            *({**base, "vocabulary": rows, "variants": ["ours"]} for rows in (8_192, 16_384, 65_536)),
        ]
    return [
        {**QWEN, "supervised": 8},
        {**QWEN, "supervised": 256},
        {**LLAMA3, "rows": 1, "supervised": 64},
        # Smaller: a CPU without instructions for bfloat16 emulates them.
        {**QWEN, "rows": 1, "length": 128, "vocabulary": 16_384, "supervised": 8, "dtype": "bfloat16"},
    ]


def floor(case: Case, positions: int) -> str:
    """What cannot be avoided: three matrix products, and weight and its gradient once through memory each time."""
    width = 2 if case["dtype"] == "bfloat16" else 4
    matrix = case["vocabulary"] * case["hidden"]
    flops = 6 * positions * matrix
    moved = width * (3 * matrix + 3 * positions * case["vocabulary"])
    return f"{flops / 1e9:.0f} GFLOP, {moved / 1e9:.2f} GB"


def curves(finished: list[dict[str, Any]]) -> str:
    """Ours alone, as one size grows at a time."""
    names = ("supervised", "length", "vocabulary")
    rows = [
        [*(found["case"][name] for name in names), span(found["ours"], 1e3, "ms"), gib(found["ours"]["peak"])]
        for found in finished
    ]
    return table(["supervised a row", "length", "vocabulary", "forward and backward", "peak"], rows)


def render(finished: list[dict[str, Any]]) -> str:
    """One row a case."""
    rows = []
    if finished and "full_logits" not in finished[0]:
        return curves(finished)
    for found in finished:
        case, mine, theirs = found["case"], found["ours"], found["full_logits"]
        positions = case["rows"] * case["supervised"]
        rows.append(
            [
                f"{case['vocabulary']} x {case['hidden']}, {case['dtype']}, N={case['numbers']}",
                f"{case['rows']} x {case['length']}",
                case["supervised"],
                span(mine),
                span(theirs),
                faster(mine, theirs),
                gib(mine["peak"]),
                gib(theirs["peak"]),
                f"{mine['peak'] / theirs['peak']:.2f}",
                f"{difference(mine, theirs):.1e}",
                floor(case, positions),
            ]
        )
    head = ["head", "rows", "supervised a row", "ours", "full logits", "faster", "peak, ours", "peak, full", "ratio"]
    return table([*head, "largest difference", "floor of ours"], rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds `--curves`."""
    parser.add_argument("--curves", action="store_true", help="growth with supervised tokens, length and vocabulary")


if __name__ == "__main__":
    run("head_and_loss", __doc__, {"ours": ours, "full_logits": full_logits}, cases, render, options, check)
