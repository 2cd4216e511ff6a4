import json
from pathlib import Path

import pytest
import torch

from smmd_lightning.cli import main
from smmd_lightning.metrics.beliefs import NumericRecorder
from smmd_lightning.vocabulary import NumericVocabulary

QUICKSTART = str(Path(__file__).parent.parent.parent / "configs" / "experiment" / "quickstart.yaml")


def kept(vocabulary, logits_BTV, ids_BT):
    recorder = NumericRecorder(vocabulary)
    for step in range(logits_BTV.shape[1]):
        scores = logits_BTV[:, step]
        assert recorder(torch.zeros(2, 1), scores) is scores
    return recorder.describe(ids_BT)


def test_expected_value_and_spread_are_those_of_the_numeric_tokens_alone():
    vocabulary = NumericVocabulary(range(3, 13), range(10))
    logits_BTV = 2 * torch.randn(2, 3, 20, generator=torch.Generator().manual_seed(0))
    ids_BT = torch.tensor([[7, 0, 3], [1, 2, 12]])
    found = kept(vocabulary, logits_BTV, ids_BT)
    assert [[entry["written"] for entry in row] for row in found] == [["4", "0"], ["9"]]
    for row, step, entry in ((0, 0, found[0][0]), (0, 2, found[0][1]), (1, 2, found[1][0])):
        whole_V = logits_BTV[row, step].double().softmax(0)
        p_N = whole_V[3:13] / whole_V[3:13].sum()
        mean = sum(value * p_N[value].item() for value in range(10))
        variance = sum((value - mean) ** 2 * p_N[value].item() for value in range(10))
        assert entry["expected"] == pytest.approx(mean, abs=1e-4)
        assert entry["spread"] == pytest.approx(variance**0.5, abs=1e-4)
        assert entry["share"] == pytest.approx(whole_V[3:13].sum().item(), abs=1e-4)
        assert entry["values"] == [
            [value, pytest.approx(p_N[value].item(), abs=1e-4)] for value in range(10) if p_N[value] >= 0.005
        ]


def test_twins_are_one_value():
    twins = NumericVocabulary([0, 1, 2], [1, 1, 3], ["1", " 1", "3"])
    found = kept(twins, torch.tensor([[[0.3, 0.3, 0.4]]]).log(), torch.tensor([[1]]))
    assert found == [
        [{"written": "1", "expected": 1.8, "spread": 0.9798, "share": 1.0, "values": [[1, 0.6], [3, 0.4]]}]
    ]


def test_other_shapes_than_were_kept_are_an_error():
    recorder = NumericRecorder(NumericVocabulary([0, 1], [0, 1]))
    assert recorder.describe(torch.zeros(2, 0, dtype=torch.int64)) == [[], []]
    recorder(torch.zeros(2, 1), torch.zeros(2, 5))
    with pytest.raises(ValueError, match=r"Kept \(rows, steps\) \(2, 1\), but got ids of \(4, 1\); beams"):
        recorder.describe(torch.zeros(4, 1, dtype=torch.int64))


@pytest.mark.parametrize("loss", ["--model.loss_weight=0.1", "--model.numeric_loss=null"])
def test_predictions_tell_what_the_model_believed(tmp_path, monkeypatch, loss):
    monkeypatch.chdir(tmp_path)
    small = ["--run_dir", "run", "--data.init_args.limit=6", "--data.init_args.num_workers=0", loss]
    main(["test", "--config", QUICKSTART, *small, "--results.save_images=0", "--results.report=false"])
    plain = Path("run/predictions.jsonl").read_text("utf-8")
    assert "distributions" not in plain
    more = ["--model.save_distributions=true", "--data.init_args.eval_batch_size=4"]
    main(["test", "--config", QUICKSTART, *small, *more])
    rows = [json.loads(line) for line in Path("run/predictions.jsonl").read_text("utf-8").splitlines()]
    for row, before in zip(rows, map(json.loads, plain.splitlines()), strict=True):
        assert row["raw"] == before["raw"]  # to look changes nothing
        digits = [sign for sign in row["raw"] if sign.isdigit()]
        assert [entry["written"] for entry in row["distributions"]] == digits
        for entry in row["distributions"]:
            likeliest = max(entry["values"], key=lambda pair: pair[1])
            assert likeliest[0] == float(entry["written"])  # greedy
    assert "Confidence and accuracy" in Path("run/report.html").read_text("utf-8") or not any(
        r["distributions"] for r in rows
    )
