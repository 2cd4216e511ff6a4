"""Numeric vocabularies of random tables, against the rule said once more as one pattern."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from smmd_lightning.vocabulary import NumericVocabulary

NUMBER = re.compile(r"([Ġ▁]?)(0|[1-9][0-9]{0,2})")  # digits of ASCII without a leading zero, at most 999

ODD = [
    "٣",
    "７",
    "²",
    "½",
    "1_0",
    "inf",
    "nan",
    "1e9",
    "<0x37>",
    "Ġ",
    "▁▁7",
    "ĠĠ1",
    "-7",
    "+7",
    "7.",
    "0x1",
    "1000",
    "①",
]
entry = st.one_of(
    st.integers(0, 1500).map(str),
    st.builds("".join, st.tuples(st.sampled_from(["Ġ", "▁", "##", "Ġ▁", ""]), st.text("0123456789", max_size=4))),
    st.sampled_from(ODD),
    st.text(max_size=3),
)


def build(entries, special):
    table = {text: number for number, text in enumerate(["[UNK]", *entries])}
    model = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]")
    made.add_special_tokens({"additional_special_tokens": [AddedToken(text, special=True) for text in special]})
    return made


@settings(max_examples=100, deadline=None)
@given(st.lists(entry.filter(lambda text: text.strip() and text != "[UNK]"), max_size=30, unique=True), st.data())
def test_exactly_the_plain_numbers_of_a_table_are_found_each_with_its_value(entries, data):
    special = data.draw(st.lists(st.sampled_from(entries), max_size=3, unique=True)) if entries else []
    tokenizer = build(entries, special)
    expected = {
        number + 1: (int(found[2]), (" " if found[1] else "") + found[2])
        for number, text in enumerate(entries)
        if (found := NUMBER.fullmatch(text)) and text not in special
    }
    if len({value for value, _ in expected.values()}) < 2:
        with pytest.raises(ValueError, match=r"no numeric token|only one number"):
            NumericVocabulary.from_tokenizer(tokenizer)
        return
    found = NumericVocabulary.from_tokenizer(tokenizer)
    ids, values = found.token_ids.tolist(), found.values.tolist()
    assert {key: (value, text) for key, value, text in zip(ids, values, found.surfaces, strict=True)} == expected
    assert values == sorted(values)
    everything = torch.arange(-100, len(entries) + 200)
    assert found.is_numeric(everything).tolist() == [key in expected for key in everything.tolist()]
    for rows in (max(expected) + 1, max(expected) + 50):
        table = found.index_table(rows)
        assert [int(found.token_ids[place]) for place in table.tolist() if place >= 0] == sorted(expected)
    with pytest.raises(ValueError, match=f"has {max(expected)} rows"):
        found.index_table(max(expected))
