"""Which tokens are numbers: exact ids in tables small enough to read, and in real ones."""

import json

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

from smmd_lightning.vocabulary import NumericVocabulary, look_up


def word_level(*entries: str, **special: object) -> PreTrainedTokenizerFast:
    table = {entry: token_id for token_id, entry in enumerate(["[UNK]", *entries])}
    model = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]", **special)


def byte_level() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    table = {entry: token_id for token_id, entry in enumerate([*letters, "42", "Ġ4", "Ġ42", "Ġx"])}
    model = Tokenizer(models.BPE(table, [("4", "2"), ("Ġ", "4"), ("Ġ", "42"), ("Ġ", "x")]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=model)


def sentence_piece() -> PreTrainedTokenizerFast:
    """A unigram model with byte fallback, as SentencePiece writes them: "5" comes out as "▁", "5"."""
    bytes_ = [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    pieces = [
        ("<unk>", 0.0),
        ("<s>", 0.0),
        *bytes_,
        ("▁", -2.0),
        ("5", -3.0),
        ("7", -3.0),
        ("▁42", -3.0),
        ("42", -4.0),
    ]
    model = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    model.pre_tokenizer = pre_tokenizers.Metaspace()
    model.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return PreTrainedTokenizerFast(tokenizer_object=model, unk_token="<unk>", bos_token="<s>")


def test_sentence_piece_digits_are_found_though_encode_splits_off_the_space():
    tokenizer = sentence_piece()
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("5")) == ["▁", "5"]
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert tokenizer.decode([2 + 0x37]) == "7"  # byte fallback reads like the digit, and is none
    assert vocabulary.token_ids.tolist() == [259, 260, 261, 262]
    assert vocabulary.values.tolist() == [5, 7, 42, 42]
    assert vocabulary.surfaces == ("5", "7", " 42", "42")


def test_byte_level_numbers_are_found_bare_and_with_their_space():
    tokenizer = byte_level()
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert vocabulary.values.tolist() == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 42, 42]
    ids = tokenizer.convert_tokens_to_ids(["4", "Ġ4", "42", "Ġ42"])
    assert vocabulary.index_of(torch.tensor(ids)).tolist() == [4, 5, 11, 12]
    assert vocabulary.begins_number.nonzero().flatten().tolist() == [5, 12]
    assert vocabulary.digit_counts.tolist() == [1] * 11 + [2, 2]
    assert repr(vocabulary) == "NumericVocabulary(13 tokens, values 0 to 42, 2 with a leading space)"


def test_a_tokenizer_in_python_has_its_digits_too():
    tokenizer = ByT5Tokenizer()
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert vocabulary.token_ids.tolist() == tokenizer.convert_tokens_to_ids(list("0123456789"))
    assert vocabulary.values.tolist() == list(range(10))


def test_what_python_takes_for_a_number_is_not_one():
    odd = ["٣", "７", "²", "½", "①", "1_0", "inf", "nan", "NaN", "1e999", "1e3", "<0x37>", "-7", "+7", "0x7"]
    more = [
        "<|reserved_token_12|>",
        "7 ",
        "ĠĠ7",
        "▁▁7",
        "##7",
        "7.",
        ".7",
        "3.14",
        "00",
        "007",
        "1,000",
        "",
        "Ġ",
    ]
    tokenizer = word_level(*odd, *more, "7", "8", "1000")
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert vocabulary.surfaces == ("7", "8")
    assert vocabulary.token_ids.tolist() == tokenizer.convert_tokens_to_ids(["7", "8"])


def test_special_and_control_tokens_are_not_numeric_and_plain_added_ones_are():
    tokenizer = word_level("1", "2", "3", pad_token="3")
    tokenizer.add_tokens([AddedToken("4", special=True), AddedToken("5"), "66"])
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert vocabulary.surfaces == ("1", "2", "5", "66")


@pytest.mark.parametrize(
    ("settings", "surfaces"),
    [
        ({}, ("0", "7", " 7", "10", "999")),
        ({"largest": 10}, ("0", "7", " 7", "10")),
        ({"largest": 5000}, ("0", "7", " 7", "10", "999", "1000")),
        ({"single_digits": True}, ("0", "7", " 7")),
        ({"leading_zeros": True}, ("00", "0", "7", " 7", "007", "10", "999")),
        ({"decimals": True}, ("0", "0.5", "3.14", "7", " 7", "10", "999")),
    ],
)
def test_settings_choose_what_counts(settings, surfaces):
    tokenizer = word_level("7", "Ġ7", "00", "0", "007", "10", "1000", "999", "3.14", "0.5", "1.2.3", "x")
    assert NumericVocabulary.from_tokenizer(tokenizer, **settings).surfaces == surfaces


def test_single_digits_and_decimals_contradict_each_other():
    with pytest.raises(ValueError, match="single_digits=True leaves no room"):
        NumericVocabulary.from_tokenizer(word_level("1", "2"), single_digits=True, decimals=True)


@pytest.mark.parametrize(("entries", "found"), [(("a", "²"), "no numeric token"), (("7", "Ġ7"), "only one number")])
def test_a_tokenizer_without_two_numbers_is_an_error_that_says_so(entries, found):
    with pytest.raises(ValueError, match=f"has {found} in its table of {len(entries) + 1} entries"):
        NumericVocabulary.from_tokenizer(word_level(*entries))


@pytest.mark.parametrize("make", [sentence_piece, byte_level, ByT5Tokenizer])
def test_building_changes_nothing_in_the_tokenizer(make, tmp_path):
    tokenizer = make()
    before = dict(tokenizer.get_vocab()), len(tokenizer), tokenizer.encode("x 42 7")
    tokenizer.save_pretrained(tmp_path / "before")
    NumericVocabulary.from_tokenizer(tokenizer)
    tokenizer.save_pretrained(tmp_path / "after")
    assert before == (dict(tokenizer.get_vocab()), len(tokenizer), tokenizer.encode("x 42 7"))
    for path in (tmp_path / "before").iterdir():
        assert json.loads(path.read_text()) == json.loads((tmp_path / "after" / path.name).read_text())


def test_index_tables_have_the_size_of_the_head():
    vocabulary = NumericVocabulary([12, 10], [1, 0])
    assert vocabulary.index_table(13).tolist() == [-1] * 10 + [0, -1, 1]
    assert vocabulary.index_table(151_936).shape == (151_936,)
    message = r"numeric token '1' has id 12, but the model's head has 12 rows \(ids 0 to 11\)"
    with pytest.raises(ValueError, match=message):
        vocabulary.index_table(12)


def test_labels_that_are_not_supervised_or_beyond_the_table_are_not_numeric():
    vocabulary = NumericVocabulary([12, 10], [1, 0])
    ids = torch.tensor([[-100, 10, 11], [12, 13, 200_000]], dtype=torch.int32)
    assert vocabulary.is_numeric(ids).tolist() == [[False, True, False], [True, False, False]]
    assert vocabulary.index_of(ids).tolist() == [[-1, 0, -1], [1, -1, -1]]
    assert look_up(vocabulary.index_table(20), ids).tolist() == [[-1, 0, -1], [1, -1, -1]]


def test_entries_are_sorted_by_value_then_id_and_compare_by_content():
    vocabulary = NumericVocabulary([5, 9, 2, 7], [3, 1, 3, 2.5], ["3", "1", " 3", "2.5"])
    assert vocabulary.token_ids.tolist() == [9, 7, 2, 5]
    assert vocabulary.values.tolist() == [1, 2.5, 3, 3]
    assert vocabulary.surfaces == ("1", "2.5", " 3", "3")
    same = NumericVocabulary([2, 5, 7, 9], [3, 3, 2.5, 1])
    assert vocabulary == same
    assert hash(vocabulary) == hash(same)
    assert vocabulary != NumericVocabulary([2, 5, 7, 9], [3, 3, 2, 1])
    assert same.surfaces == ("1", "2.5", "3", "3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1.0]), "equally long, got 2, 1 and 1"),
        (([1, 1], [1.0, 2.0]), "different from each other"),
        (([-1, 1], [1.0, 2.0]), "not negative"),
        (([0, 1], [1.0, float("nan")]), "finite"),
        (([0, 1], [1.0, float("inf")]), "finite"),
        (([0, 1], [7.0, 7.0]), "at least two different values .* got 1 among 2 tokens"),
        (([], []), "at least two different values"),
    ],
)
def test_impossible_vocabularies_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        NumericVocabulary(*arguments)


@pytest.mark.parametrize(
    ("name", "first_ids", "count", "with_zeros"),
    [
        ("qwen3", [15, 16, 17, 18, 19, 20, 21, 22, 23, 24], 10, 10),
        ("llama3", [15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 605, 806], 1000, 1110),
        ("mistral_v3_spm", [29502, 29508, 29518, 29538, 29549, 29550, 29552, 29555, 29551, 29542], 10, 10),
        ("smollm2", [32, 33, 34, 35, 36, 37, 38, 39, 40, 41], 10, 10),
    ],
)
def test_real_vocabularies(name, first_ids, count, with_zeros, real_tokenizers):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_tokenizers / name)
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer)
    assert vocabulary.values.tolist() == list(range(count))
    assert vocabulary.token_ids[: len(first_ids)].tolist() == first_ids
    assert len(NumericVocabulary.from_tokenizer(tokenizer, leading_zeros=True)) == with_zeros
    assert int(vocabulary.values[vocabulary.index_of(torch.tensor(tokenizer.convert_tokens_to_ids("7")))]) == 7
