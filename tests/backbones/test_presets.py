"""Every preset goes through everything a real model does: processor, loss, backward, generation, save, reload."""

import pytest
import torch
from tiny_chats import TEXT, Row, cross_entropies, encode, gradients, make, two_rows

from smmd_lightning.backbones import LanguageBackbone, VisionLanguageBackbone
from smmd_lightning.backbones.tiny.preset import TinyPreset
from smmd_lightning.backbones.tiny.presets import PRESETS, fingerprint, write


@pytest.mark.parametrize("name", PRESETS)
def test_from_chat_to_reloaded_logits(name, tmp_path):
    backbone = make(name)
    rows = [Row("What time is it?"), Row("And in words?", "12:34")] if PRESETS[name].family in TEXT else two_rows()
    inputs, labels = encode(name, rows)
    (losses,) = backbone(inputs, labels, cross_entropies)
    own = backbone.model(**inputs, labels=labels).loss
    torch.testing.assert_close(losses.mean(), own)
    losses.mean().backward()
    trained = set(backbone.trainable_names())
    assert trained == set(gradients(backbone))
    assert all(gradient.isfinite().all() for gradient in gradients(backbone).values())

    prompt = encode(name, rows, side="left", answers=False)
    tokens = backbone.generate(prompt, max_new_tokens=4)
    assert tokens.shape[0] == 2
    assert 1 <= tokens.shape[1] <= 4

    backbone.save_pretrained(tmp_path)
    again = type(backbone)(str(tmp_path))
    again.load()
    with torch.no_grad():
        assert torch.equal(again.model.eval()(**inputs).logits, backbone.model.eval()(**inputs).logits)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_small_and_their_head_is_larger_than_the_vocabulary(name):
    from smmd_lightning.backbones.processors import load_processor

    backbone = make(name)
    processor = load_processor(f"tiny:{name}")
    assert sum(parameter.numel() for parameter in backbone.parameters()) < 1_100_000
    assert backbone.head_rows > len(getattr(processor, "tokenizer", processor))


def test_image_tokens_are_as_many_as_the_preset_says():
    for name in ("qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava"):
        inputs = encode(name, two_rows()[:1], answers=False)
        image_id = make(name).config.image_token_id
        assert int((inputs["input_ids"] == image_id).sum()) == PRESETS[name].image_tokens


def test_an_own_preset_is_a_row_of_numbers(tmp_path):
    """What the quickstart does: other sizes, other initial weights."""
    wide = TinyPreset(
        "llava", hidden=96, heads=3, kv_heads=None, vision_hidden=96, vision_heads=3, vision_layers=1, feature_layer=-1,
        rope_theta=100.0, vision={"initializer_factor": 0.5}, scale={"position_embedding": 5.0},
    )  # fmt: skip
    plain = TinyPreset(**{**wide.__dict__, "scale": {}})
    assert fingerprint(wide) != fingerprint(plain)
    state = {}
    for preset, folder in ((wide, tmp_path / "wide"), (plain, tmp_path / "plain")):
        folder.mkdir()
        torch.manual_seed(len(state))  # must not matter
        write(preset, folder)
        backbone = VisionLanguageBackbone(str(folder))
        backbone.load()
        state[folder.name] = backbone.model.state_dict()
    for name, weight in state["wide"].items():
        factor = 5.0 if "position_embedding" in name else 1.0
        torch.testing.assert_close(weight, factor * state["plain"][name])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"image_size": 60}, "multiple of 16"), ({"hidden": 60}, "twice the"), ({"vision_hidden": 72}, "four times")],
)
def test_sizes_that_do_not_fit_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        TinyPreset("qwen2-vl", **sizes)


def test_from_scratch_weights_follow_the_global_seed():
    def embedding(seed):
        torch.manual_seed(seed)
        backbone = make("llama", from_scratch=True)
        return backbone.model.get_input_embeddings().weight.detach()

    assert torch.equal(embedding(3), embedding(3))
    assert not torch.equal(embedding(3), embedding(4))
    backbone = make("llama", from_scratch=True)
    assert backbone.model.generation_config.eos_token_id is not None


def test_writing_a_preset_leaves_the_global_generator_alone(tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    write(PRESETS["llama"], tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_the_wrong_class_for_a_model_is_refused():
    with pytest.raises(ValueError, match="'llama' model, which AutoModelForImageTextToText cannot build"):
        VisionLanguageBackbone("tiny:llama").load()


def test_a_model_is_not_there_before_load():
    with pytest.raises(RuntimeError, match="call load"):
        _ = LanguageBackbone("tiny:llama").head_rows
