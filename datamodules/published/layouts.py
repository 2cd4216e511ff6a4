r"""The files of published benchmarks -> questions.

Unusual: files are taken as their authors distribute them; a folder may hold one file per split or shards of it, and
whatever is missing is said with the names that were looked for.

One real example, a line of MeasureBench::

    {"question_id": "ammeter_0", "question": "What is the reading?", "image": "img/a.png", "image_type": "ammeter",
     "evaluator": "interval_matching", "evaluator_kwargs": "{\"interval\": [9.5, 9.7], \"units\": [\"A\"]}"}
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datamodules.published import prompts
from datamodules.sources.open_tables import read_table
from datamodules.sources.tables import whole_number
from datamodules.sources.text_rows import numbered_lines

ENDINGS = (".json", ".jsonl", ".csv", ".parquet")


@dataclass(frozen=True)
class BenchmarkQuestion:
    """One question of a benchmark.

    Attributes:
        id: Its name.
        prompt: What is asked.
        answer: The right answer, for people.
        meta: Facts that the benchmark's rule needs, `task` among them.
        image: Path of the picture in the data folder, its bytes, or an undecoded image of `datasets`.
        box: Left, top, width and height of the part of the picture that is asked about, in pixels. None: all of it.
    """

    id: str
    prompt: str
    answer: str
    meta: dict[str, Any]
    image: Any
    box: tuple[float, float, float, float] | None = None


Reader = Callable[[Path, str], Iterator[BenchmarkQuestion]]


def measurebench(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads MeasureBench; splits `real_world` and `synthetic_test`."""
    for where, row in _rows(data, (split, "measurebench")):
        needed = _cells(row, where, "question", "evaluator_kwargs")
        rule = needed["evaluator_kwargs"]
        rule = json.loads(rule) if isinstance(rule, str) else rule
        several = "intervals" in rule
        intervals = rule["intervals"] if several else [rule["interval"]]
        units = list(rule.get("units") or [])
        facts = {"intervals": intervals, "units": units if several else [units], "design": row.get("design")}
        yield BenchmarkQuestion(
            str(row.get("question_id", where)),
            prompts.MEASUREBENCH.replace("{question}", str(needed["question"]).strip()),
            f"{intervals[0]} {units[0] if units and not several else ''}".strip(),
            {"task": "measurebench", "kind": str(row.get("image_type") or ""), **facts},
            _image(row, where, "image", "img_path"),
        )


def chartqapro(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads ChartQAPro; of a conversation the last question is asked, the turns before it given."""
    for where, row in _rows(data, (split, "chartqapro")):
        needed = _cells(row, where, "Question", "Answer", "Question Type", "Year")
        kind, questions, answers = str(needed["Question Type"]), list(needed["Question"]), list(needed["Answer"])
        if kind not in prompts.CHARTQAPRO:
            raise ValueError(f"{where}: the question type must be one of {', '.join(prompts.CHARTQAPRO)}, got {kind!r}")
        turns = [f"Question: {q}\nAnswer: {a}" for q, a in zip(questions[:-1], answers[:-1], strict=False)]
        paragraph = str(row.get("Paragraph") or "").strip()
        parts = [prompts.CHARTQAPRO[kind], *([paragraph] if paragraph else []), *turns, f"Question: {questions[-1]}"]
        yield BenchmarkQuestion(
            where,
            "\n".join(parts),
            str(answers[-1]),
            {"task": "chartqapro", "kind": kind, "years": [str(year) for year in needed["Year"]]},
            _image(row, where, "image"),
        )


def its_about_time(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads a label file of It's About Time; splits `coco_final`, `openimg_final` and `movies_final`."""
    for where, row in _rows(data, (split,)):
        needed = _cells(row, where, "file_name", "hour", "minute")
        box = row.get("bbox_det")
        yield BenchmarkQuestion(
            str(needed["file_name"]),
            prompts.CLOCK,
            _time(row, where),
            {"task": "its_about_time"},
            needed["file_name"],
            None if box in (None, "") else tuple(float(edge) for edge in ast.literal_eval(str(box))),  # type: ignore[arg-type]
        )


def ticktockvqa(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads TickTockVQA's annotations.json; splits as its rows name them."""
    for where, row in _rows(data, ("annotations",)):
        if str(row.get("split", split)) == split:
            name = _image(row, where, "image_path", "image_name")
            yield BenchmarkQuestion(str(name), prompts.CLOCK, _time(row, where), {"task": "ticktockvqa"}, name)


def clockbench(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads ClockBench's first question, the time; its follow-up questions need the model's own first answer."""
    questions = _object(data, f"input_{split}")
    answers = _object(data, f"answers_{split}")
    for name, asked in questions.items():
        needed = _cells(asked, name, "image_url", "question_time")
        if name not in answers:
            raise ValueError(f"{data}: no answer to the question {name!r}")
        truth = answers[name]["answer_time"]
        truth = json.loads(truth) if isinstance(truth, str) else truth
        meta = {"task": "clockbench", "kind": "valid" if truth.get("valid") else "invalid", "truth": truth}
        yield BenchmarkQuestion(name, needed["question_time"].strip(), json.dumps(truth), meta, needed["image_url"])


def chartqa(data: Path, split: str) -> Iterator[BenchmarkQuestion]:
    """Reads ChartQA's `test_human.json` and `test_augmented.json`, pictures in `png` beside them."""
    for kind in ("human", "augmented"):
        for where, row in _rows(data, (f"{split}_{kind}",)):
            needed = _cells(row, where, "imgname", "query", "label")
            prompt = prompts.CHARTQA.replace("{question}", str(needed["query"]).strip())
            folder = next((f for f in (f"{split}/png", "png") if (data / f).is_dir()), "png")
            meta = {"task": "chart", "kind": kind}
            yield BenchmarkQuestion(where, prompt, str(needed["label"]), meta, f"{folder}/{needed['imgname']}")


BENCHMARKS: Mapping[str, tuple[Reader, str]] = {
    "measurebench": (measurebench, "real_world"),
    "chartqapro": (chartqapro, "test"),
    "its_about_time": (its_about_time, "coco_final"),
    "ticktockvqa": (ticktockvqa, "test"),
    "clockbench": (clockbench, "sample"),
    "chartqa": (chartqa, "test"),
}
"""Reader of each benchmark, and the split it is asked by default."""


def _files(data: Path, stems: Sequence[str]) -> list[Path]:
    if data.is_file():
        return [data]
    for stem in stems:
        found = sorted(path for path in data.glob(f"**/{stem}*") if path.suffix.lower() in ENDINGS)
        if found:
            return found
    raise ValueError(f"{data}: no file {' or '.join(f'{stem}*' for stem in stems)} ending in {', '.join(ENDINGS)}")


def _rows(data: Path, stems: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in _files(data, stems):
        if path.suffix.lower() == ".json":
            rows: Any = _json(path)
            if not isinstance(rows, list):
                raise ValueError(f"{path}: expected a list of questions, got {type(rows).__name__}")
        elif path.suffix.lower() == ".jsonl":
            rows = _json_lines(path)
        else:
            table = read_table(path)
            rows = (table.row(index) for index in range(len(table)))
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, Mapping):
                raise ValueError(f"{path}: row {number} is no object")
            yield f"{path.stem}-{number}", row


def _object(data: Path, stem: str) -> Mapping[str, Any]:
    path = _files(data, (stem,))[0]
    found = _json(path)
    if not isinstance(found, Mapping):
        raise ValueError(f"{path}: expected an object of questions by name, got {type(found).__name__}")
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path}: not JSON in UTF-8 ({error})") from error


def _json_lines(path: Path) -> Iterator[Any]:
    number = 0
    try:
        for number, _, line in numbered_lines(path):  # noqa: B007
            if line.strip():
                yield json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON in UTF-8, line {number} ({error})") from error


def _cells(row: Mapping[str, Any], where: str, *names: str) -> dict[str, Any]:
    missing = [name for name in names if row.get(name) is None]
    if missing:
        raise ValueError(f"{where}: no {', '.join(map(repr, missing))}; there are {', '.join(map(repr, row))}")
    return {name: row[name] for name in names}


def _image(row: Mapping[str, Any], where: str, *names: str) -> Any:
    found = next((row[name] for name in names if row.get(name) not in (None, "")), None)
    if found is None:
        raise ValueError(f"{where}: no picture under {' or '.join(map(repr, names))}")
    return found


def _time(row: Mapping[str, Any], where: str) -> str:
    cells = _cells(row, where, "hour", "minute")
    return f"{whole_number(cells['hour'], 0, 23, where):02d}:{whole_number(cells['minute'], 0, 59, where):02d}"
