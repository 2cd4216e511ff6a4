"""Leading zeros: counted where the answers hold them, or refused with the setting's name."""

import pytest
from transformers import AutoTokenizer

from smmd_lightning import NumericVocabulary
from smmd_lightning.backbones.locate import locate
from smmd_lightning.callbacks.digit_coverage import DigitCoverage, check_coverage, measure


@pytest.fixture(scope="module")
def three_digit_tokenizer():
    """Writes digits in groups of up to three from the left, as Llama 3 does; zeros in front are part of a token."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [str(n) for n in range(1000)] + [f"{n:02d}" for n in range(10)] + [f"{n:03d}" for n in range(100)]
    vocabulary = {word: place for place, word in enumerate([*words, ":", ".", ",", "<unk>"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[0-9]{1,3}|[^0-9]"), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def test_tokens_with_leading_zeros_are_found_and_refused_by_name(three_digit_tokenizer):
    vocabulary = NumericVocabulary.from_tokenizer(three_digit_tokenizer)
    found = measure(three_digit_tokenizer, vocabulary, ["12:30", "03:05", "11:59"])
    assert found == DigitCoverage(answers=3, digits=12, covered=8, zeros=4, example="03:05")
    assert str(found) == "67 % of the digits of 3 training answers"
    with pytest.raises(ValueError, match=r"leaves out 33 % .*'03:05'.*--model\.vocabulary\.leading_zeros=true"):
        check_coverage(found)


@pytest.mark.parametrize("answer", ["03:05", "0.05", "1,005"])
def test_with_the_setting_every_digit_counts(three_digit_tokenizer, answer):
    vocabulary = NumericVocabulary.from_tokenizer(three_digit_tokenizer, leading_zeros=True)
    found = measure(three_digit_tokenizer, vocabulary, [answer])
    assert found.covered == found.digits > 0
    check_coverage(found)


def test_a_rare_zero_is_told_and_not_refused(three_digit_tokenizer):
    vocabulary = NumericVocabulary.from_tokenizer(three_digit_tokenizer)
    check_coverage(measure(three_digit_tokenizer, vocabulary, ["123456"] * 100 + ["07"]))


def test_single_digit_tokenizers_write_no_leading_zeros():
    tokenizer = AutoTokenizer.from_pretrained(locate("tiny:qwen2"))
    found = measure(tokenizer, NumericVocabulary.from_tokenizer(tokenizer), ["03:05", "0.05"])
    assert (found.covered, found.digits, found.zeros) == (7, 7, 0)
    check_coverage(None)


def test_llama_3_needs_the_setting_for_times(real_tokenizers):
    tokenizer = AutoTokenizer.from_pretrained(real_tokenizers / "llama3")
    with pytest.raises(ValueError, match="leading_zeros=true"):
        check_coverage(measure(tokenizer, NumericVocabulary.from_tokenizer(tokenizer), ["03:05"]))
    vocabulary = NumericVocabulary.from_tokenizer(tokenizer, leading_zeros=True)
    assert measure(tokenizer, vocabulary, ["03:05", "0.05", "1,005"]).zeros == 0
