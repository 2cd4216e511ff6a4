"""Which architectures can be trained: those that the tests train, current ones, and a reason for each of the others."""

import pytest
import torch

from smmd_lightning.backbones.catalogue import catalogue
from smmd_lightning.commands.models import main

TRAINED_IN_TESTS = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava", "llava_onevision"}
CURRENT = {"gemma3", "smolvlm", "internvl", "llava_next", "paligemma", "mistral3", "lfm2_vl"}


def test_architectures_that_are_trained_in_tests_and_current_ones_are_listed_as_such():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    found = {entry.model_type: entry.reason for entry in catalogue("images", TRAINED_IN_TESTS | CURRENT)}
    assert torch.equal(torch.rand(1), expected)
    assert found == dict.fromkeys(sorted(TRAINED_IN_TESTS | CURRENT))
    texts = {entry.model_type: entry.reason for entry in catalogue("text", {"llama", "qwen2", "gemma2", "gpt2"})}
    assert texts == {"gemma2": None, "gpt2": None, "llama": None, "qwen2": None}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("florence2", "encoder and decoder"),
        ("fuyu", "no vision tower and language model"),
        ("blip-2", "head cannot be taken off"),
        ("mllama", "get_image_features"),
    ],
)
def test_the_others_come_with_their_reason(name, reason, capsys):
    main([name])
    printed = capsys.readouterr().out
    assert printed.startswith(name)
    assert "no: " in printed
    assert reason in printed
    assert printed.endswith("0 of 1 can be trained\n")


def test_a_name_that_transformers_lacks_is_an_error():
    with pytest.raises(SystemExit, match=r"has no such text model: \['nothing'\]"):
        main(["--text", "nothing"])
