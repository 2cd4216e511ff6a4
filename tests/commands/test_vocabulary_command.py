"""What `smmd-vocab` prints, to the letter."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from smmd_lightning.commands.vocabulary import main


@pytest.fixture
def folder(tmp_path):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    table = {entry: token_id for token_id, entry in enumerate([*letters, "42", "Ġ42", "00", "10"])}
    model = Tokenizer(models.BPE(table, [("4", "2"), ("Ġ", "42"), ("0", "0"), ("1", "0")]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=model).save_pretrained(tmp_path)
    return tmp_path


def printed(capsys) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_report(folder, capsys):
    assert main([str(folder)]) == 0
    assert printed(capsys) == [
        "numeric tokens 13",
        "values integers from 0 to 42, 31 missing between",
        "written 12 bare, 1 with a leading space",
        'left out 1 with leading zeros ("00", …), 0 above 999',
        "",
        "text tokens of them numeric",
        '"7" 7 1',
        '" 42" Ġ42 1',
        '"123" 1 | 2 | 3 3',
        '"3.14" 3 | . | 1 | 4 3',
        '"1,234" 1 | , | 2 | 3 | 4 4',
    ]


def test_settings_reach_the_vocabulary(folder, capsys):
    assert main([str(folder), "--largest", "20", "--leading-zeros"]) == 0
    lines = printed(capsys)
    assert lines[0] == "numeric tokens 12"
    assert lines[3] == "left out 0 with leading zeros, 2 above 20"
    assert main([str(folder), "--single-digits"]) == 0
    assert printed(capsys)[1] == "values every integer from 0 to 9"


def test_plain_text_when_not_a_terminal(folder, capsys):
    main([str(folder)])
    assert "\x1b" not in capsys.readouterr().out


def test_a_tokenizer_without_numbers_is_a_message_and_a_status(tmp_path, capsys):
    model = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]").save_pretrained(tmp_path)
    assert main([str(tmp_path)]) == 1
    assert "has no numeric token in its table of 2 entries" in capsys.readouterr().err


def test_the_names_that_backbones_take_work_here_too(capsys):
    assert main(["tiny:qwen2"]) == 0
    assert "every integer from 0 to 9" in printed(capsys)[1]
    assert main(["tiny:nothing"]) == 1
    assert "nothing" in capsys.readouterr().err


def test_a_missing_folder_is_a_message_and_a_status(tmp_path, capsys):
    assert main([str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err.startswith("smmd-vocab: ")
