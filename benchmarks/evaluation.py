"""Evaluation: batched generation with KV cache against one prompt at a time, and stopping when every row has ended.

    python -m benchmarks.evaluation --model smollm2-135m

Greedy answers to drawn word problems, through our collator and `Backbone.generate`, as validation and test do. The
answers of both must be the same texts, but for rows where two tokens are equally likely within rounding.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.harness import Case, Clock, faster, gib, run, span, table


def prepared(case: Case) -> tuple[Any, Any, list[Any]]:
    """Loaded backbone, collator and examples of a case."""
    from datamodules import DrawnWordProblems, TextMathDataModule
    from smmd_lightning.backbones import LanguageBackbone
    from smmd_lightning.types import SampleKey

    backbone = LanguageBackbone(case["model"])
    backbone.load()
    module = TextMathDataModule(case["model"], DrawnWordProblems())
    return backbone, module.collator, [module.example("test", SampleKey(0, index)) for index in range(case["prompts"])]


def answers(case: Case, size: int, **options: Any) -> dict[str, Any]:
    """Answers all prompts in batches of `size`."""
    backbone, collator, examples = prepared(case)
    batches = [collator(examples[start : start + size], generation=True) for start in range(0, len(examples), size)]
    backbone.generate(batches[0].inputs, max_new_tokens=1)
    texts, tokens = [], 0
    with Clock() as clock:
        for batch in batches:
            ids = backbone.generate(batch.inputs, max_new_tokens=case["tokens"], eos_token_id=batch.stop_ids, **options)
            texts += collator.tokenizer.batch_decode(ids, skip_special_tokens=True)
            tokens += ids.numel()
    return {"seconds": clock.seconds, "cpu": clock.cpu, "texts": texts, "tokens": tokens}


def batched(case: Case) -> dict[str, Any]:
    """Batches of 16, KV cache."""
    return answers(case, 16)


def one_by_one(case: Case) -> dict[str, Any]:
    """One prompt at a time, KV cache."""
    return answers(case, 1)


def without_stop(case: Case) -> dict[str, Any]:
    """Batches of 16 that always run to the most tokens, as without early stop."""
    return answers(case, 16, min_new_tokens=case["tokens"])


def cases(arguments: argparse.Namespace) -> list[Case]:
    """16 prompts; few tokens show what one costs, many show the early stop."""
    if arguments.toy:
        return [{"model": "tiny:llama", "prompts": 3, "tokens": 4}]
    return [{"model": arguments.model, "prompts": 16, "tokens": tokens} for tokens in arguments.tokens]


def floor(case: Case, size: int) -> str:
    """The decoder's weights once through memory for each step of a batch."""
    if not case["model"].startswith("smollm2"):
        return ""
    return f"{135e6 * 4 * case['prompts'] / size * case['tokens'] / 1e9:.0f} GB"


def same(found: dict[str, Any]) -> int:
    """How many answers are the same batched and one by one."""
    return sum(a == b for a, b in zip(found["batched"]["texts"], found["one_by_one"]["texts"], strict=True))


def check(found: dict[str, Any]) -> None:
    """Compares the answers.

    Raises:
        RuntimeError: More than a fifth of them differ, which rounding does not explain.
    """
    if same(found) < 0.8 * found["case"]["prompts"]:
        raise RuntimeError(f"{found['case']}: only {same(found)} answers are the same batched and one by one.")


def render(finished: list[dict[str, Any]]) -> str:
    """One row a case."""
    rows = []
    for found in finished:
        case, many, one, long = (found[name] for name in ("case", "batched", "one_by_one", "without_stop"))
        rows.append(
            [
                f"{case['prompts']} prompts, at most {case['tokens']} tokens",
                span(many),
                span(one),
                faster(many, one),
                span(long),
                faster(many, long),
                f"{same(found)} of {case['prompts']}",
                f"{gib(many['peak'])}, {gib(one['peak'])}",
                f"{floor(case, 16)}, {floor(case, 1)}",
            ]
        )
    head = ["what", "batches of 16", "one by one", "faster", "no early stop", "early stop brings", "same answers"]
    return table([*head, "peak: 16, one", "weights read: 16, one"], rows)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds `--model` and `--tokens`."""
    parser.add_argument("--tokens", type=int, nargs="+", default=[32, 256], help="most tokens of an answer")
    parser.add_argument("--model", default="smollm2-135m", help="model to generate with")


if __name__ == "__main__":
    variants = {"batched": batched, "one_by_one": one_by_one, "without_stop": without_stop}
    run("evaluation", __doc__, variants, cases, render, options, check)
