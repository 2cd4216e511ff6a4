"""The numeric loss alone, against the package ntloss and against head and cross-entropy.

    python -m benchmarks.numeric_loss

Forward and backward pass on the logits of numeric positions, half of the supervised ones. `ntloss` gets a vocabulary of
its numbers and one other word, which is kind to it: in training it would read the whole head's logits.

Shape legend: K numeric positions, N numeric tokens, V rows of the head.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks import head_and_loss
from benchmarks.harness import Case, Clock, run, span, table
from smmd_lightning import NumericVocabulary, SMMDLoss
from smmd_lightning.losses import NTLWASLoss

TARGET = {10: 0.01, 1000: 0.03}
"""Most of the time of head and cross-entropy that SMMD may take, by N."""


def material(case: Case) -> tuple[Tensor, Tensor, NumericVocabulary]:
    """Logits (K, N) and targets (K,) of a case."""
    generator = torch.Generator().manual_seed(0)
    positions = case["rows"] * case["supervised"] // 2
    logits_KN = torch.randn(positions, case["numbers"], generator=generator).requires_grad_()
    targets_K = torch.randint(0, case["numbers"], (positions,), generator=generator)
    return logits_KN, targets_K, NumericVocabulary(range(case["numbers"]), range(case["numbers"]))


def smmd(case: Case) -> dict[str, Any]:
    """`SMMDLoss`."""
    logits_KN, targets_K, vocabulary = material(case)
    loss = SMMDLoss().bind(vocabulary)
    return timed(case, logits_KN, lambda: loss(logits_KN, targets_K).mean())


def ntl_was(case: Case) -> dict[str, Any]:
    """Our NTL-WAS."""
    logits_KN, targets_K, vocabulary = material(case)
    loss = NTLWASLoss().bind(vocabulary)
    return timed(case, logits_KN, lambda: loss(logits_KN, targets_K).mean())


def package(case: Case) -> dict[str, Any]:
    """NTL-WAS of the package `ntloss`."""
    import ntloss
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    logits_KN, targets_K, _ = material(case)
    words = {str(number): number for number in range(case["numbers"])} | {"[UNK]": case["numbers"]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="[UNK]")))
    loss = ntloss.NTLoss(tokenizer, vocab_size=len(words), digit_level=case["numbers"] == 10, reweigh=False)
    other_K1 = torch.zeros(len(targets_K), 1)
    return timed(case, logits_KN, lambda: loss(torch.cat([logits_KN, other_K1], 1)[None], targets_K[None]))


def timed(case: Case, logits_KN: Tensor, loss: Callable[[], Tensor]) -> dict[str, Any]:
    """Median of many passes, and what came out."""
    seconds, processor = [], []
    for _ in range(case["passes"] + 3):
        logits_KN.grad = None
        with Clock() as clock:
            value = loss()
            value.backward()
        seconds.append(clock.seconds)
        processor.append(clock.cpu)
    assert logits_KN.grad is not None
    return {
        "seconds": statistics.median(seconds[3:]),
        "cpu": statistics.mean(processor[3:]),
        "loss": value.item(),
        "norm": logits_KN.grad.norm().item(),
    }


def head_and_ce(case: Case) -> dict[str, Any]:
    """Our head and cross-entropy without a numeric loss."""
    return head_and_loss.ours({**case, "numeric": False, "warm_up": 1, "passes": 1})


VARIANTS = {"smmd": smmd, "ntl_was": ntl_was, "package": package, "head_and_ce": head_and_ce}


def alternating(case: Case) -> dict[str, Any]:
    """All variants in turn, `rounds` times, in one process: here peak memory is no question."""
    rounds = [{name: variant(case) for name, variant in VARIANTS.items()} for _ in range(case["rounds"])]
    each = {
        name: {
            **rounds[0][name],
            "median": statistics.median(one[name]["seconds"] for one in rounds),
            "least": min(one[name]["seconds"] for one in rounds),
            "most": max(one[name]["seconds"] for one in rounds),
            "cpu": statistics.median(one[name]["cpu"] for one in rounds),
        }
        for name in VARIANTS
    }
    return {"seconds": each["smmd"]["median"], "each": each}


def cases(arguments: argparse.Namespace) -> list[Case]:
    """N = 10 with Qwen's head, N = 1000 with Llama 3's."""
    if arguments.toy:
        return [
            {**head_and_loss.TOY, "numbers": numbers, "supervised": 8, "passes": 2, "rounds": 1}
            for numbers in (10, 1000)
        ]
    common = {"supervised": 8, "passes": 200, "rounds": arguments.runs or 5, "runs": 1}
    return [{**head, **common} for head in (head_and_loss.QWEN, head_and_loss.LLAMA3)]


def check(found: dict[str, Any]) -> None:
    """Compares our NTL-WAS with the package's.

    Raises:
        RuntimeError: Loss or gradient differ.
    """
    mine, theirs = (found["alternating"]["each"][name] for name in ("ntl_was", "package"))
    off = max(abs(mine[name] - theirs[name]) / abs(theirs[name]) for name in ("loss", "norm"))
    if off > 1e-5:
        raise RuntimeError(f"{found['case']}: our NTL-WAS and the package's differ by {off:.2g}.")


def render(finished: list[dict[str, Any]]) -> str:
    """One row a case."""
    rows = []
    for found in finished:
        case, each = found["case"], found["alternating"]["each"]
        head = each["head_and_ce"]
        positions = case["rows"] * case["supervised"] // 2
        share, processor = (each["smmd"][key] / head[key] for key in ("median", "cpu"))
        rows.append(
            [
                f"{case['vocabulary']} x {case['hidden']}",
                case["numbers"],
                positions,
                *(span(each[name], 1e3, "ms") for name in ("smmd", "ntl_was", "package")),
                span(head),
                f"{share:.2%} (processor {processor:.2%})",
                f"{TARGET[case['numbers']]:.0%}",
                f"{4 * positions * case['numbers'] ** 2 / 1e6:.3g} MFLOP",
            ]
        )
    head_ = ["head", "N", "numeric positions", "SMMD", "NTL-WAS, ours", "NTL-WAS, ntloss", "head and CE"]
    return table([*head_, "SMMD's share", "target", "two products with the whole matrix"], rows)


if __name__ == "__main__":
    run("numeric_loss", __doc__, {"alternating": alternating}, cases, render, check=check)
