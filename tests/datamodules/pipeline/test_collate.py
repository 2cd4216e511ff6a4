"""The mask: decoding what is labelled gives the answer and the end token, for every family."""

import pytest
import torch
from PIL import Image

from datamodules.pipeline.collate import Collator, TooLong
from smmd_lightning.backbones.processors import load_processor
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


def picture(shade=120, size=64):
    return Image.new("RGB", (size, size), (shade, 40, 200))


def clock(number, answer="03:05", images=1, prompt="What time is it? Not 12:34."):
    return NumericExample(
        id=f"s{number}", prompt=prompt, answer=answer, images=tuple(picture(30 * k) for k in range(images))
    )


@pytest.fixture(scope="module")
def collator():
    made = {}

    def get(path, **settings):
        if path not in made:
            made[path] = load_processor(path)
        return Collator(made[path], **settings)

    return get


def labelled(batch, collator, row):
    ids = batch.labels[row][batch.labels[row] != IGNORE_INDEX]
    return collator.tokenizer.decode(ids), ids


@pytest.mark.parametrize("path", VISION + TEXT)
def test_what_is_labelled_is_the_answer_and_the_end_token(path, collator):
    images = 1 if path in VISION else 0
    made = collator(path)
    answers = ["03:05", "12:59", "7", "1,234.5"]
    batch = made([clock(number, answer, images) for number, answer in enumerate(answers)])
    ends = {made.tokenizer.eos_token, *made.tokenizer.all_special_tokens, *made.tokenizer.get_added_vocab()}
    for row, answer in enumerate(answers):
        text, ids = labelled(batch, made, row)
        end = made.tokenizer.decode(ids[-1:])
        assert end in ends
        assert text.removesuffix(end).strip() == answer
        # In training the labels are the row's own last real tokens.
        length = int(batch.inputs["attention_mask"][row].sum())
        torch.testing.assert_close(batch.inputs["input_ids"][row, length - len(ids) : length], ids)


@pytest.mark.parametrize("path", VISION + TEXT)
def test_a_training_row_goes_on_where_the_generation_prompt_ends(path, collator):
    images = 1 if path in VISION else 0
    made = collator(path)
    examples = [clock(0, "03:05", images), clock(1, "12:00", images, prompt="A much longer question, for padding?")]
    full, prompt = made(examples), made(examples, generation=True)
    assert prompt.labels is None
    for row in range(2):
        start = int((full.labels[row] != IGNORE_INDEX).nonzero()[0])
        mask = prompt.inputs["attention_mask"][row].bool()
        assert mask[-1], "generation prompts are padded on the left"
        assert prompt.inputs["input_ids"][row][mask].tolist() == full.inputs["input_ids"][row, :start].tolist()


@pytest.mark.parametrize("path", VISION + TEXT)
def test_a_generation_prompt_is_what_the_library_makes_of_the_same_chat(path, collator):
    """Begin tokens too, which some templates write (Llama's) and some leave to the tokenizer (LLaVA's)."""
    images = 1 if path in VISION else 0
    made, example = collator(path), clock(0, images=images)
    content = [{"type": "text", "text": example.prompt}]
    if images:
        content.insert(0, {"type": "image", "image": example.images[0]})
    chat = [{"role": "user", "content": content if images else example.prompt}]
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
    expected = made.processor.apply_chat_template(chat, **options)
    found = made([example], generation=True).inputs
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


@pytest.mark.parametrize("path", VISION)
def test_rows_with_none_one_and_two_images_share_a_batch(path, collator):
    made = collator(path)
    batch = made([clock(0, images=1), clock(1, images=0), clock(2, images=2)])
    ids = batch.inputs["input_ids"]
    token = getattr(made.processor, "image_token_id", None) or made.tokenizer.convert_tokens_to_ids("<image>")
    counts = (ids == token).sum(dim=1).tolist()
    assert counts[1] == 0
    assert counts[0] > 0
    assert counts[2] == 2 * counts[0]
    if "qwen" in path:
        assert batch.inputs["image_grid_thw"].shape == (3, 3)
    else:
        assert batch.inputs["pixel_values"].shape[0] == 3


@pytest.mark.parametrize("path", ["tiny:llava", "tiny:qwen2"])
def test_a_template_is_rendered_once_a_question_and_rows_are_as_from_a_new_collator(path, collator, monkeypatch):
    monkeypatch.setattr("datamodules.pipeline.chat_frames.FRAMES_KEPT", 2)
    images = int(path in VISION)
    used = collator(path)
    rendered = []
    render = used._frames._render
    monkeypatch.setattr(
        used._frames, "_render", lambda messages, **options: rendered.append(1) or render(messages, **options)
    )
    for answers, prompt, renders in [("1 2 3", "one?", 2), ("4 5", "two?", 2), ("6", "one?", 0), ("7", "three?", 2)]:
        rows = [clock(0, answer, images, prompt) for answer in answers.split()]
        rendered.clear()
        batch, expected = used(rows), collator(path)(rows)
        assert len(rendered) == renders
        torch.testing.assert_close(batch.inputs, expected.inputs)
        torch.testing.assert_close(batch.labels, expected.labels)
        assert len(used._frames._frames) <= 2


@pytest.mark.parametrize("path", VISION)
def test_a_row_over_max_length_is_named_and_never_cut(path, collator):
    whole = collator(path)([clock(0), clock(1, "12:34:56" * 10)])
    lengths = whole.inputs["attention_mask"].sum(dim=1).tolist()
    with pytest.raises(TooLong) as raised:
        collator(path, max_length=lengths[0])([clock(0), clock(1, "12:34:56" * 10)])
    assert raised.value.reasons == {
        1: f"sample s1 has {lengths[1]} tokens with 1 image(s), the limit is max_length={lengths[0]}"
    }


def test_rows_that_do_not_count_have_no_labels(collator):
    batch = collator("tiny:qwen2")([clock(0, images=0), clock(1, images=0)], [True, False])
    assert (batch.labels[0] != IGNORE_INDEX).any()
    assert (batch.labels[1] == IGNORE_INDEX).all()


def test_the_true_end_keeps_its_label_where_pad_equals_end(collator):
    made = collator("tiny:llama")
    pad = made.tokenizer.pad_token
    try:
        made.tokenizer.pad_token = made.tokenizer.eos_token
        batch = made([clock(0, "7", 0), clock(1, "12345678", 0)])
        for row in range(2):
            kept = batch.labels[row][batch.labels[row] != IGNORE_INDEX]
            assert int(kept[-1]) in set(made.tokenizer.all_special_ids) | set(made.tokenizer.added_tokens_decoder)
    finally:
        made.tokenizer.pad_token = pad


def test_a_picture_for_a_language_model_is_an_error(collator):
    with pytest.raises(ValueError, match="reads text only, but sample s0 has an image"):
        collator("tiny:qwen2")([clock(0, images=1)])


def test_a_template_that_drops_answers_or_opens_them_otherwise_is_an_error(collator):
    made = collator("tiny:qwen2")
    template = made.processor.chat_template
    try:
        made.processor.chat_template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
        with pytest.raises(ValueError, match="drops the assistant's answer"):
            made([clock(0, images=0)])
        turns = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
        made.processor.chat_template = turns + "{% if add_generation_prompt %}bot>{% endif %}"
        with pytest.raises(ValueError, match=r"opens an answer with .*but writes a given answer after"):
            made([clock(0, images=0)])
    finally:
        made.processor.chat_template = template


def test_a_model_without_template_gets_a_plain_question(collator):
    made = collator("tiny:llama")
    template, made.processor.chat_template = made.processor.chat_template, None
    try:
        plain = Collator(made.processor)
        batch = plain([clock(0, "42", 0, prompt="6 x 7?")])
        text, _ = labelled(batch, plain, 0)
        assert text.strip() == f"42{plain.tokenizer.eos_token}"
        braces = Collator(made.processor, fallback_template="{x} {prompt} {}")([clock(0, "42", 0, prompt="{a}?")])
        assert "{x} {a}? {} 42" in plain.tokenizer.decode(braces.inputs["input_ids"][0])
        with pytest.raises(ValueError, match=r"fallback_template must hold \{prompt\}.*got 'Answer:'"):
            Collator(made.processor, fallback_template="Answer:")
    finally:
        made.processor.chat_template = template


@pytest.mark.parametrize("name", ["qwen3", "llama3", "mistral_v3_spm", "smollm2"])
@pytest.mark.parametrize("answer", ["03:05", "42", "-1,234.5", "Natalia sold 48/2 = 24 clips.\n#### 72"])
def test_real_tokenizers_and_templates(real_tokenizers, name, answer):
    tokenizer = load_processor(str(real_tokenizers / name))
    options = {"enable_thinking": False} if name == "qwen3" else {}
    made = Collator(tokenizer, template_options=options)
    batch = made([clock(0, answer, 0), clock(1, "7", 0)])
    text, ids = labelled(batch, made, 0)
    assert text.removesuffix(tokenizer.decode(ids[-1:])).strip() == answer
    assert tokenizer.decode(ids[-1:]) == {"llama3": "<|eot_id|>"}.get(name, tokenizer.eos_token)
    assert int(ids[-1]) in batch.stop_ids


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{{ raise_exception('System role not supported') if messages[0]['role'] == 'system' }}",
            "leave system_prompt",
        ),
        (
            "{% for m in messages if m['role'] != 'system' %}[{{ m['role'] }}]{{ m['content'] }}</s>{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}",
            "drops the system message",
        ),
    ],
)
def test_a_template_without_a_system_role_is_named_with_the_setting(template, message):
    processor = load_processor("tiny:llama")
    processor.chat_template = template
    with pytest.raises(ValueError, match=message):
        Collator(processor, system_prompt="Be short.")([NumericExample("1", "1+1?", "2")])
