"""Text math from tables: answers, marks, splits, and what is said of a row that cannot be used."""

import json

import pytest
from opening import open_file, open_hub

from datamodules.text_math.tables import MathColumns, MathFiles, MathHub
from smmd_lightning.answers import parse_number
from smmd_lightning.types import BadSample, SampleKey

GSM8K = [
    {
        "question": "Natalia sold clips to 48 friends, then half as many. How many in all?",
        "answer": "She sold 48/2 = <<48/2=24>>24 clips in May.\nShe sold 48+24 = <<48+24=72>>72 in all.\n#### 72",
    },
    {"question": "How many grams?", "answer": "It is 2*540 = <<2*540=1080>>1,080 grams.\n#### 1,080"},
]
METAMATH = [
    {
        "query": "What is 1+1?",
        "response": "We add. The answer is: 2",
        "type": "GSM_Rephrased",
        "original_question": "?",
    },
    {
        "query": "Simplify.",
        "response": r"We get $\boxed{\frac{3}{4}}$. The answer is: \frac{3}{4}",
        "type": "MATH_AnsAug",
    },
]
MATHEMATICS = [
    {"module": "algebra", "regime": "train-easy", "question": "Solve 9*j = 27.", "answer": "3", "numeric": True},
    {"module": "base", "regime": "train-easy", "question": "In base 16, 2b9 - d?", "answer": "2e5", "numeric": False},
    {
        "module": "time",
        "regime": "interpolate",
        "question": "137 minutes before 3:05 PM?",
        "answer": "12:48 PM",
        "numeric": False,
    },
]


@pytest.fixture
def save(tmp_path):
    def save(rows, name="problems.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return tmp_path / name

    return save


@pytest.fixture
def cache(tmp_path):
    return str(tmp_path / "cache")


def examples(source, epoch=0):
    return [source.example(SampleKey(epoch, index)) for index in range(len(source))]


def test_reasoning_is_kept_without_calculator_marks(save, cache):
    first, second = examples(open_file(MathFiles, save(GSM8K), "train", cache_dir=cache))
    assert first.prompt == GSM8K[0]["question"]
    assert first.answer == "She sold 48/2 = 24 clips in May.\nShe sold 48+24 = 72 in all.\n#### 72"
    assert first.meta == {"task": "math", "numeric": True, "final": "72"}
    assert (first.id, second.id) == ("problems-1", "problems-2")
    assert second.answer == "It is 2*540 = 1,080 grams.\n#### 1,080"


def test_calculator_marks_can_be_kept(save, cache):
    source = open_file(MathFiles, save(GSM8K), "train", calculator=True, cache_dir=cache)
    assert [example.answer for example in examples(source)] == [row["answer"] for row in GSM8K]


def test_answers_alone_are_plain_numbers(save, cache):
    assert [
        e.answer for e in examples(open_file(MathFiles, save(GSM8K), "train", reasoning=False, cache_dir=cache))
    ] == [
        "72",
        "1080",
    ]


def test_metamath_columns_are_known(save, cache):
    source = open_file(MathFiles, save(METAMATH), "train", reasoning=False, cache_dir=cache)
    assert [(e.prompt, e.answer, e.meta["kind"]) for e in examples(source)] == [
        ("What is 1+1?", "2", "GSM_Rephrased"),
        ("Simplify.", r"\frac{3}{4}", "MATH_AnsAug"),
    ]
    assert all(example.meta["numeric"] for example in examples(source))


def test_mathematics_dataset_says_itself_which_answers_are_numbers(save, cache):
    source = open_file(MathFiles, save(MATHEMATICS), "train", cache_dir=cache)
    assert [(e.answer, e.meta["numeric"], e.meta["regime"]) for e in examples(source)] == [
        ("3", True, "train-easy"),
        ("2e5", False, "train-easy"),
        ("12:48 PM", False, "interpolate"),
    ]


def test_rows_without_a_number_can_be_left_out(save, cache):
    source = open_file(MathFiles, save(MATHEMATICS), "train", only_numeric=True, cache_dir=cache)
    assert (len(source), source.left_out) == (1, 2)
    source = open_file(MathFiles, save(MATHEMATICS), "train", only_numeric=True, columns=MathColumns(), cache_dir=cache)
    assert [e.answer for e in examples(source)] == ["3", "2e5"]  # without the column only the text can tell


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_other_kinds_of_files_and_own_column_names(tmp_path, cache, suffix):
    import pandas

    rows = pandas.DataFrame(
        {"frage": ["2 + 2?", "3 + 4?"], "antwort": ["4", "7"], "nr": ["a", "b"], "stufe": ["x", "y"]}
    )
    path = tmp_path / f"aufgaben.{suffix}"
    if suffix == "json":
        rows.to_json(path, orient="records")
    else:
        getattr(rows, f"to_{suffix}")(path, index=False)
    columns = MathColumns("frage", "antwort", kind="stufe", id="nr", extra=("nr",))
    source = open_file(MathFiles, path, "train", columns=columns, prompts=["{question} Answer:"], cache_dir=cache)
    assert [(e.id, e.prompt, e.answer, e.meta["kind"], e.meta["nr"]) for e in examples(source)] == [
        ("a", "2 + 2? Answer:", "4", "x", "a"),
        ("b", "3 + 4? Answer:", "7", "y", "b"),
    ]


def test_one_file_is_dealt_out_by_question(save, cache):
    path = save([{"question": f"{i // 2} + 1?", "answer": str(i // 2 + 1)} for i in range(200)])
    parts = {
        split: {
            e.prompt for e in examples(open_file(MathFiles, path, split, fractions=(0.6, 0.2, 0.2), cache_dir=cache))
        }
        for split in ("train", "val", "test")
    }
    assert sum(map(len, parts.values())) == 100
    assert not parts["train"] & parts["test"]
    assert min(map(len, parts.values())) > 5


def test_several_wordings_are_chosen_by_sample_and_epoch(save, cache):
    path = save([{"question": f"{i}?", "answer": str(i)} for i in range(30)])
    source = open_file(MathFiles, path, "train", prompts=["A {question}", "B {question}"], seed=1, cache_dir=cache)
    again = open_file(MathFiles, path, "train", prompts=["A {question}", "B {question}"], seed=1, cache_dir=cache)
    assert [e.prompt for e in examples(source)] == [e.prompt for e in examples(again)]
    assert {e.prompt[0] for e in examples(source)} == {"A", "B"}
    assert [e.prompt for e in examples(source)] != [e.prompt for e in examples(source, epoch=1)]


def test_braces_in_a_question_do_no_harm(save, cache):
    source = open_file(
        MathFiles, save([{"question": "Pick from {o: 4, {question}}", "answer": "2/15"}]), "train", cache_dir=cache
    )
    assert source.example(SampleKey(0, 0)).prompt == "Pick from {o: 4, {question}}"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question": " ", "answer": "4"}, r"problems.jsonl: row 2, column 'question': ' ' is no text"),
        ({"question": "2 + 2?", "answer": None}, r"problems.jsonl: row 2, column 'answer': None is no text"),
        ({"question": "2 + 2?", "answer": "nan"}, r"row 2, column 'answer': 'nan' is no answer"),
        ({"question": "2 + 2?", "answer": "So.\n#### -Inf"}, r"row 2, column 'answer': '-Inf' is no answer"),
        ({"question": "2 + 2?", "answer": "####"}, r"row 2, column 'answer': '####' has no final answer"),
        ({"question": "2 + 2?", "answer": "We add.\nIt is 4."}, r"row 2, column 'answer': .* has no final answer"),
        (
            {"question": "2 + 2?", "answer": "so " * 100},
            r"row 2, column 'answer': 'so so .*\.\.\.' has no final answer",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_named(save, cache, row, complaint):
    source = open_file(MathFiles, save([{"question": "1?", "answer": "1"}, row]), "train", cache_dir=cache)
    with pytest.raises(BadSample, match=complaint):
        source.example(SampleKey(0, 1))


def test_a_flag_that_is_none_is_named(save, cache):
    path = save([{"question": "1?", "answer": "1", "ok": "perhaps"}])
    source = open_file(MathFiles, path, "train", columns=MathColumns(numeric="ok"), cache_dir=cache)
    with pytest.raises(BadSample, match="row 1, column 'ok': 'perhaps' is neither true nor false"):
        source.example(SampleKey(0, 0))


def test_unknown_columns_and_prompts_are_named(save, cache):
    path = save([{"problem": "1?", "solution": "1"}])
    with pytest.raises(ValueError, match="the columns are 'problem', 'solution'; say in `columns`"):
        open_file(MathFiles, path, "train", cache_dir=cache)
    with pytest.raises(ValueError, match="no column 'answer'"):
        open_file(MathFiles, path, "train", columns=MathColumns(question="problem"), cache_dir=cache)
    with pytest.raises(ValueError, match=r"each of prompts must hold \{question\}.*got 'Solve it'"):
        open_file(MathFiles, save(GSM8K), "train", prompts=["Solve it"], cache_dir=cache)


@pytest.mark.parametrize(
    ("name", "rows", "config"), [("openai/gsm8k", GSM8K, "main"), ("meta-math/MetaMathQA", METAMATH, None)]
)
def test_data_sets_on_the_hub_go_by_name(monkeypatch, name, rows, config):
    import datasets

    asked = {}

    def load_dataset(*args, **settings):
        asked.update(args=args, **settings)
        return datasets.Dataset.from_list(rows)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    source = open_hub(MathHub, name, "val", hub_split="train[90%:]", revision="abc", reasoning=False)
    assert asked["args"] == (name, config)
    assert (asked["split"], asked["revision"]) == ("train[90%:]", "abc")
    assert [e.id for e in examples(source)] == [f"{name.split('/')[1]}-{i}" for i in (1, 2)]
    assert all(e.meta["numeric"] for e in examples(source))


def test_real_gsm8k_answers_are_all_numbers(real, cache):
    source = open_file(MathFiles, real / "gsm8k" / "test.jsonl", "test", reasoning=False, cache_dir=cache)
    whole = open_file(MathFiles, real / "gsm8k" / "test.jsonl", "test", cache_dir=cache)
    assert len(source) == 1319
    for index in range(len(source)):
        short, long = source.example(SampleKey(0, index)), whole.example(SampleKey(0, index))
        assert short.meta["numeric"]
        assert str(parse_number(short.answer)) == short.answer
        assert parse_number(long.answer) == parse_number(short.answer)
        assert "<<" not in long.answer


def test_real_mathematics_and_arithmetic_are_read(real, cache):
    source = open_file(
        MathFiles, real / "text_math" / "mathematics_dataset.jsonl", "test", only_numeric=True, cache_dir=cache
    )
    assert (len(source), source.left_out) == (4235, 1382)
    assert all(parse_number(e.answer) is not None for e in examples(source))
    source = open_file(MathFiles, real / "text_math" / "gpt3_arithmetic.jsonl", "test", cache_dir=cache)
    assert len({e.meta["kind"] for e in examples(source)}) == 11
    assert len(source) == 4400
