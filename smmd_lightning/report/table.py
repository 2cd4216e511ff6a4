"""The rows of the table of all answers, as the page's script takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smmd_lightning.report.judged import Judged
from smmd_lightning.report.picking import picture
from smmd_lightning.report.run import Run
from smmd_lightning.report.svg import number

MOST_ROWS = 5000
MOST_TEXT = 2000
"""Letters of an answer or prompt that the table keeps."""


def table_data(run: Run, judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """Returns one row an answer, in the order of the prediction file, judged by the present rules where possible."""
    answers = list(run.answers)
    for part in judged:
        for place, row in zip(part.places, part.rows, strict=True):
            answers[place] = row
    return [_row(run, answer) for answer in answers[:MOST_ROWS]]


def _row(run: Run, answer: dict[str, Any]) -> dict[str, Any]:
    found = answer.get("meta")
    meta: dict[str, Any] = found if isinstance(found, dict) else {}
    kept = {name: answer.get(name) for name in ("id", "task", "truth", "parsed", "error", "error_unit", "correct")}
    kept |= {name: str(answer.get(name) or "")[:MOST_TEXT] for name in ("prompt", "raw")}
    facts = {name: str(value)[:200] for name, value in meta.items() if name != "task"}
    for place, belief in enumerate(answer.get("distributions") or [], start=1):
        told = f"{number(float(belief['expected']))} ± {number(float(belief['spread']))}"
        facts[f"number {place}"] = f"{belief['written']}, expected {told}"
    kept["meta"] = facts
    kept["kind"] = str(meta.get("kind") or meta.get("numerals") or "")
    if address := picture(run.folder, answer):
        kept["image"] = address
    return kept
