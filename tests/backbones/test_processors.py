"""Processors come out ready for training, and no vocabulary grows."""

import json

import pytest
from tiny_chats import picture

from smmd_lightning.backbones.locate import locate
from smmd_lightning.backbones.processors import load_processor


@pytest.mark.parametrize(
    ("name", "pad"),
    [
        ("qwen3", "<|endoftext|>"),
        ("llama3", "<|reserved_special_token_0|>"),
        ("mistral_v3_spm", "<unk>"),
        ("smollm2", "<|im_end|>"),
    ],
)
def test_real_tokenizers_get_a_pad_token_they_already_have(name, pad, real_tokenizers):
    from transformers import AutoTokenizer

    folder = str(real_tokenizers / name)
    plain, loaded = AutoTokenizer.from_pretrained(folder), load_processor(folder)
    assert loaded.pad_token == pad
    assert loaded.get_vocab() == plain.get_vocab()
    assert len(loaded) == len(plain)
    assert loaded.encode("7 42 123") == plain.encode("7 42 123")


def without(folder, target, keys):
    """A copy of a model folder whose processor lacks some settings."""
    import shutil

    shutil.copytree(folder, target)
    file = target / "processor_config.json"
    settings = json.loads(file.read_text())
    for key in keys:
        del settings[key]
    file.write_text(json.dumps(settings))


def test_a_llava_processor_without_patch_size_gets_it_from_the_model(tmp_path):
    whole = load_processor("tiny:llava")
    keys = ("patch_size", "vision_feature_select_strategy", "num_additional_image_tokens")
    without(locate("tiny:llava"), tmp_path / "old", keys)
    filled = load_processor(str(tmp_path / "old"))
    assert [getattr(filled, key) for key in keys] == [getattr(whole, key) for key in keys] == [8, "default", 1]
    inputs = filled(text="<image>\nWhat?", images=[picture(0)], return_tensors="pt")
    assert int((inputs["input_ids"] == filled.image_token_id).sum()) == 64


def test_image_options_replace_those_of_the_files():
    image = picture(0, (64, 64))

    def tokens(**options):
        processor = load_processor("tiny:qwen2-vl", options=options)
        return processor.image_processor(images=[image], return_tensors="pt")["image_grid_thw"].tolist()

    assert tokens() == [[1, 8, 8]]
    assert tokens(max_pixels=32 * 32) == [[1, 4, 4]]
    assert tokens(min_pixels=128 * 128, max_pixels=128 * 128) == [[1, 16, 16]]
    with pytest.raises(ValueError, match=r"option 'max_pixel': Qwen2VLImageProcessor of .* has no such setting"):
        tokens(max_pixel=3)
    with pytest.raises(ValueError, match="'tiny:llama' is a language model"):
        load_processor("tiny:llama", options={"max_pixels": 3})
