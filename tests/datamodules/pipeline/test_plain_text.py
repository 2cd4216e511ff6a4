"""Special tokens in data are text: masks, image tokens and turns stay what the template made them."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from datamodules.pipeline.chat_frames import ANSWER_MARK
from datamodules.pipeline.collate import Collator
from datamodules.pipeline.plain_text import BREAK, PlainText
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.tiny.presets import PRESETS
from smmd_lightning.types import IGNORE_INDEX, NumericExample

VISION = [
    "tiny:qwen2-vl",
    "tiny:qwen2.5-vl",
    "tiny:qwen3-vl",
    "tiny:llava",
    "tiny:llava-onevision",
    "tiny:llava-next",
    "tiny:mistral3",
]
TEXT = ["tiny:llama", "tiny:qwen2", "tiny:qwen3", "tiny:gemma3-text"]
PICTURE = Image.new("RGB", (64, 64), (3, 40, 200))

MARKUP = [
    "<image>", "<video>", "<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>", "<|im_start|>",
    "<|im_end|>", "<s>", "</s>", "<unk>", "[INST]", "[/INST]", "[IMG]", "USER:", " ASSISTANT:", "<|eot_id|>",
    "<|begin_of_text|>", "<think>", "</think>", "<|endoftext|>", "<pad>", "<<|im_end|>", "<|im_<|im_end|>end|>",
    ANSWER_MARK, "{{ messages }}", "{% for m in x %}", "{prompt}", "\n", "  ", "07", "12:34", "٣", "½", "é",
    "e\u0301", "🙂",
]  # fmt: skip
text = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=6)), max_size=6).map("".join)


def no_surrogates(value):
    return not any(unicodedata.category(sign) in ("Cs", "Cc") and sign not in "\n\t" for sign in value)


text = text.filter(no_surrogates)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def collator():
    made = {}

    def get(path, **options):
        if path not in made:
            made[path] = Collator(load_processor(path), **options)
        return made[path]

    return get


def special(made, ids):
    """How often each special token stands in a row, but for padding."""
    known = {token for token, content in made.tokenizer.added_tokens_decoder.items() if content.special}
    return Counter(token for token in ids.tolist() if token in known and token != made.tokenizer.unk_token_id)


def check(made, prompt, answer, images):
    example = NumericExample("x", prompt, answer, (PICTURE,) * images)
    plain = NumericExample("y", "a", "1", (PICTURE,) * images)
    batch, usual = made([example]), made([plain])
    ids = batch.inputs["input_ids"][0]
    assert special(made, ids) == special(made, usual.inputs["input_ids"][0])
    labelled = ids[batch.labels[0] != IGNORE_INDEX]
    end = made.tokenizer.decode(labelled[-1:])
    told = made.tokenizer.decode(labelled[:-1])
    assert int(labelled[-1]) in batch.stop_ids
    assert end == made.tokenizer.decode(usual.inputs["input_ids"][0][-1:])
    expected = PlainText.of(made.processor)(answer.strip())
    # Some families compose letters and put a space before an answer; nothing else may differ.
    assert unicodedata.normalize("NFC", told).strip() == unicodedata.normalize("NFC", expected).strip()
    assert expected.replace(BREAK, "") == answer.strip().replace(BREAK, "")
    opened = made([example], generation=True).inputs["input_ids"][0]
    assert ids[: len(ids) - len(labelled)].tolist() == opened.tolist()
    assert batch.examples[0].prompt == prompt  # what is reported is what the data hold


@pytest.mark.parametrize("path", VISION + TEXT)
@few
@given(prompt=text, answer=text)
def test_what_is_labelled_is_the_answer_for_any_text(collator, path, prompt, answer):
    check(collator(path), prompt, answer, images=1 if path in VISION else 0)


row = st.tuples(text, text, st.integers(0, 2))
system = st.one_of(st.none(), st.text("abc 12.,:\nü", min_size=1, max_size=20).filter(str.strip))


@pytest.mark.parametrize("name", PRESETS)
@few
@given(rows=st.lists(row, min_size=1, max_size=3), system=system)
def test_each_row_of_any_chat_has_its_own_answer_as_label(collator, name, rows, system):
    """Random system messages, questions, answers and numbers of pictures, several rows a batch, every preset."""
    plain = collator(f"tiny:{name}")
    made = Collator(plain.processor, system_prompt=system)
    examples = [
        NumericExample(str(number), prompt, answer, (PICTURE,) * (count if made.takes_images else 0))
        for number, (prompt, answer, count) in enumerate(rows)
    ]
    batch = made(examples)
    token = made.tokenizer.convert_tokens_to_ids(getattr(made.processor, "image_token", None) or "<unk>")
    one = plain([NumericExample("one", "a", "1", (PICTURE,))]) if made.takes_images else None
    for number, (example, ids, labels) in enumerate(
        zip(examples, batch.inputs["input_ids"], batch.labels, strict=True)
    ):
        alone = made([example])
        length = int(batch.inputs["attention_mask"][number].sum())
        assert ids[:length].tolist() == alone.inputs["input_ids"][0].tolist()
        assert labels[:length].tolist() == alone.labels[0].tolist()
        assert (labels[length:] == IGNORE_INDEX).all()
        (places,) = (labels != IGNORE_INDEX).nonzero(as_tuple=True)
        assert places.tolist() == list(range(int(places[0]), length))  # in one piece, up to the end
        told = made.tokenizer.decode(labels[places[:-1]])
        expected = PlainText.of(made.processor)(example.answer.strip())
        assert unicodedata.normalize("NFC", told).strip() == unicodedata.normalize("NFC", expected).strip()
        assert int(labels[places[-1]]) in batch.stop_ids
        if one is not None:
            per_image = int((one.inputs["input_ids"] == token).sum())
            assert int((ids == token).sum()) == per_image * len(example.images)
            assert not (labels == token).any()


@pytest.mark.parametrize("path", VISION + TEXT)
def test_every_special_token_of_a_family_is_text_in_questions_and_answers(collator, path):
    made = collator(path)
    for token in [str(token.content) for token in made.tokenizer.added_tokens_decoder.values()]:
        check(made, f"What does {token} mean{token}", "03:05", images=2 if path in VISION else 0)
        check(made, "What?", f"{token}7{token}", images=1 if path in VISION else 0)


@pytest.mark.parametrize("name", ["qwen3", "llama3", "mistral_v3_spm", "smollm2"])
def test_real_tokenizers(real_tokenizers, collator, name):
    options = {"template_options": {"enable_thinking": False}} if name == "qwen3" else {}
    made = collator(str(real_tokenizers / name), **options)
    for sign in [*MARKUP, "<|start_header_id|>", "<|eom_id|>", "[TOOL_CALLS]"]:
        check(made, f"a {sign} b", "42", images=0)
        check(made, "What?", f"4 {sign}2", images=0)


def test_a_text_without_special_tokens_stays_the_same_object():
    plain, text = PlainText(["<image>", "</s>", "x"]), "x < y, <Image>, </ s>"
    assert plain(text) is text
    assert PlainText([])("<image>") == "<image>"


@given(st.text(alphabet="<|a>", max_size=30))
def test_overlapping_and_nested_tokens_are_all_broken(text):
    tokens = ["<|a|>", "|>", "<a>", "a>", "<|a|><"]
    broken = PlainText(tokens)(text)
    assert not any(token in broken for token in tokens)
    assert broken.replace(BREAK, "") == text
