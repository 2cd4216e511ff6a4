"""LoRA and freezing train what the settings say and nothing else; files that do not fit are refused."""

import logging

import pytest
import torch
from tiny_chats import VISION, Row, cross_entropies, encode, gradients, make, two_rows

from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
from smmd_lightning.backbones.merging import merge_adapter
from smmd_lightning.backbones.naming import load_trained
from smmd_lightning.backbones.vision_language import parts

CHATS = [Row("What time is it?"), Row("And in words, please?", "12:34")]


def step(backbone, inputs, labels):
    (losses,) = backbone(inputs, labels, cross_entropies)
    losses.mean().backward()
    return losses.detach()


@pytest.mark.parametrize("name", VISION)
def test_lora_stays_in_the_language_model_unless_asked(name):
    """q_proj is the name of attention layers in vision towers too."""
    suffixes = ["q_proj", "v_proj"] if name.startswith("llava") else "all-linear"
    adapted = make(name, adapter=LoRA(rank=2, target_modules=suffixes)).trainable_names()
    assert adapted
    assert all(".language_model." in key and ".lora_" in key for key in adapted)
    with_vision = make(name, adapter=LoRA(rank=2, target_modules=suffixes, vision=True)).trainable_names()
    extra = set(with_vision) - set(adapted)
    assert set(adapted) < set(with_vision)
    assert all(".visual." in key or ".vision_tower." in key or ".multi_modal_projector." in key for key in extra)


def test_the_chosen_modules_are_logged(caplog):
    with caplog.at_level(logging.INFO):
        make("qwen2-vl", adapter=LoRA(rank=2, target_modules=["q_proj", "down_proj"]))
    assert "LoRA of rank 2 on 4 modules of Qwen2VLForConditionalGeneration: down_proj x 2, q_proj x 2" in caplog.text


def test_targets_that_fit_nothing_are_an_error_with_the_candidates():
    with pytest.raises(ValueError, match=r"\['qkv'\] fit no linear layer of the language model of .*'q_proj'"):
        make("qwen2-vl", adapter=LoRA(target_modules=["q_proj", "qkv"]))
    assert make("qwen2-vl", adapter=LoRA(target_modules=["qkv"], vision=True)).trainable_names()


def test_the_head_is_adapted_only_by_name():
    assert not any("lm_head" in key for key in make("llama", adapter=LoRA()).trainable_names())
    backbone = make("llama", adapter=LoRA(target_modules=["lm_head"]))
    assert [key for key in backbone.trainable_names() if "lm_head" not in key] == []
    assert backbone.head_rows == make("llama").head_rows
    step(backbone, *encode("llama", CHATS))


@pytest.mark.parametrize("kind", ["rank", "dropout"])
def test_numbers_out_of_range_are_refused(kind):
    with pytest.raises(ValueError, match=f"LoRA {kind}"):
        LoRA(**{kind: {"rank": 0, "dropout": 1.0}[kind]})


def test_lora_with_gradient_checkpointing_gets_the_same_gradients():
    inputs, labels = encode("qwen2-vl", two_rows())
    found = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        adapter = LoRA(rank=2, also_train=["model.visual.merger"])
        backbone = make("qwen2-vl", adapter=adapter, gradient_checkpointing=checkpointing)
        torch.nn.init.normal_(backbone.get_parameter(backbone.trainable_names()[-1]))
        step(backbone, inputs, labels)
        found.append(gradients(backbone))
        assert set(found[-1]) == set(backbone.trainable_names())
        assert any(".merger." in key for key in found[-1])
    torch.testing.assert_close(found[0], found[1])


def test_adapters_of_bfloat16_weights_are_float32():
    inputs, labels = encode("llava", two_rows())
    backbone = make("llava", dtype="bfloat16", adapter=LoRA(rank=2))
    step(backbone, inputs, labels)
    assert {p.dtype for p in backbone.parameters() if p.requires_grad} == {torch.float32}
    assert {p.dtype for p in backbone.parameters() if not p.requires_grad} == {torch.bfloat16}
    assert set(gradients(backbone)) == set(backbone.trainable_names())


def test_a_frozen_tower_is_no_part_of_the_backward_pass():
    inputs, _ = encode("qwen2-vl", two_rows())
    for settings in ({"freeze_vision": True, "freeze_projector": True}, {"adapter": LoRA(rank=2)}):
        backbone = make("qwen2-vl", gradient_checkpointing=True, **settings)
        outputs = []
        backbone.causal.get_encoder("image").register_forward_hook(lambda _, __, output: outputs.append(output[0]))  # noqa: B023
        backbone.encode(inputs)
        assert not outputs[0].requires_grad


@pytest.mark.parametrize("name", VISION)
def test_every_parameter_belongs_to_one_part(name):
    backbone = make(name)
    found = parts(backbone.causal)
    assert all(found.values())
    assert sum(map(len, found.values())) == len(dict(backbone.causal.named_parameters()))
    between = ("merger", "multi_modal_projector", "image_newline")
    assert all(any(part in key for part in between) for key in found["projector"])
    assert all("visual" in key or "vision_tower" in key for key in found["vision"])
    assert all("language_model" in key or "lm_head" in key for key in found["language"])


@pytest.mark.parametrize("part", ["vision", "projector", "language"])
def test_freezing_one_part_leaves_the_others_trained(part):
    inputs, labels = encode("qwen3-vl", two_rows())
    backbone = make("qwen3-vl", **{f"freeze_{part}": True})
    step(backbone, inputs, labels)
    found = set(gradients(backbone))
    assert found == set(backbone.trainable_names())
    for kind, names in parts(backbone.causal).items():
        assert ({f"model.{name}" for name in names} <= found) == (kind != part)


def test_vision_blocks_behind_the_feature_layer_are_not_trained():
    """LLaVA reads the last block but one; what lies behind can get no gradient and would stop DDP."""
    frozen = set(dict(make("llava").named_parameters())) - set(make("llava").trainable_names())
    assert any("encoder.layers.1." in name for name in frozen)
    assert any("post_layernorm" in name for name in frozen)
    assert not any("encoder.layers.0." in name or "language_model" in name for name in frozen)


def test_freezing_by_pattern():
    frozen = make("llama", freeze=["model.embed_tokens", "model.layers.*.mlp.*"])
    names = frozen.trainable_names()
    assert not any("embed_tokens" in name or ".mlp." in name for name in names)
    assert any("self_attn" in name for name in names)
    with pytest.raises(
        ValueError, match=r"'vision_tower.\*' fits no parameter of Llama.*; its parts are .*model.layers"
    ):
        make("llama", freeze=["vision_tower.*"])


@pytest.mark.parametrize("name", VISION)
def test_a_batch_without_images_reaches_every_trained_parameter(name):
    """Otherwise a rank that has only text would never join the reduction of the vision tower's gradients."""
    backbone = make(name)
    inputs, labels = encode(name, CHATS)
    assert "pixel_values" not in inputs
    losses = step(backbone, inputs, labels)
    found = gradients(backbone)
    assert set(found) == set(backbone.trainable_names())
    vision = {f"model.{key}" for kind in ("vision", "projector") for key in parts(backbone.causal)[kind]}
    assert not any(found[key].any() for key in vision & set(found))
    blind = make(name, freeze_vision=True, freeze_projector=True)
    torch.testing.assert_close(step(blind, inputs, labels), losses)
    assert not blind._must_run_tower()


@pytest.mark.parametrize("name", VISION)
def test_rows_with_and_without_images_share_a_batch(name):
    rows = [*two_rows(), Row("No picture."), Row("Two.", pictures=two_rows()[0].pictures * 2)]
    losses = step(make(name), *encode(name, rows))
    alone = [step(make(name), *encode(name, [row])) for row in rows]
    torch.testing.assert_close(losses, torch.cat(alone), rtol=1e-4, atol=1e-4)


def test_a_saved_adapter_is_taken_up_again(tmp_path):
    inputs, labels = encode("qwen2-vl", two_rows())
    backbone = make("qwen2-vl", adapter=LoRA(rank=2))
    with torch.no_grad():
        for name in backbone.trainable_names():
            torch.nn.init.normal_(backbone.get_parameter(name), std=0.1)
    backbone.save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    again = make("qwen2-vl", adapter=LoRA(rank=2, weights=str(tmp_path)))
    torch.testing.assert_close(step(again, inputs, labels), step(backbone, inputs, labels))
    with pytest.raises(ValueError, match=r"(?s)does not fit.*of another shape"):
        make("qwen2-vl", adapter=LoRA(rank=3, weights=str(tmp_path)))
    with pytest.raises(ValueError, match=r"(?s)does not fit.*missing \(\d+\).*visual.*"):
        make("qwen2-vl", adapter=LoRA(rank=2, vision=True, weights=str(tmp_path)))
    with pytest.raises(ValueError, match=r"(?s)does not fit.*unexpected \(\d+\).*mlp"):
        make("qwen2-vl", adapter=LoRA(rank=2, target_modules=["q_proj"], weights=str(tmp_path)))
    with pytest.raises(ValueError, match="there is no adapter_model"):
        make("qwen2-vl", adapter=LoRA(weights=str(tmp_path / "nowhere")))


def test_trained_weights_alone_restore_a_model():
    inputs, labels = encode("llava", two_rows())
    backbone = make("llava", freeze_vision=True)
    with torch.no_grad():
        for name in backbone.trainable_names():
            backbone.get_parameter(name).mul_(1.5)
    state = {name: backbone.get_parameter(name).detach().clone() for name in backbone.trainable_names()}
    fresh = make("llava", freeze_vision=True)
    load_trained(fresh, state)
    torch.testing.assert_close(step(fresh, inputs, labels), step(backbone, inputs, labels))

    name, weight = state.popitem()
    state["model.old_name.weight"] = weight
    untouched = make("llava", freeze_vision=True)
    before = {key: value.clone() for key, value in untouched.state_dict().items()}
    with pytest.raises(ValueError, match=rf"(?s)missing \(1\): {name}.*unexpected \(1\): model.old_name.weight"):
        load_trained(untouched, state)
    torch.testing.assert_close(dict(untouched.state_dict()), before)


def test_a_text_model_with_the_vision_class_or_without_parts_is_refused():
    with pytest.raises(ValueError, match="is not the class for it"):
        VisionLanguageBackbone("tiny:qwen2").load()
    with pytest.raises(ValueError, match="is not the class for it"):
        LanguageBackbone("tiny:llava").load()


def trained_a_step(name, adapter, **settings):
    """A backbone whose adapter has been moved away from its start, and rows for it."""
    torch.manual_seed(0)
    backbone = make(name, adapter=adapter, **settings)
    inputs, labels = encode(name, CHATS)
    step(backbone, inputs, labels)
    with torch.no_grad():
        for parameter in backbone.parameters():
            if parameter.grad is not None:
                parameter.add_(0.05 * torch.randn_like(parameter))
    return backbone, inputs


@pytest.mark.parametrize(
    "adapter",
    [LoRA(4, dora=True), LoRA(4, rslora=True), LoRA(4, init="pissa"), LoRA(4, dora=True, rslora=True)],
    ids=["dora", "rslora", "pissa", "dora_rslora"],
)
def test_every_kind_of_adapter_starts_at_the_base_model_and_merges_to_what_it_was(adapter, tmp_path):
    from peft import PeftModel

    backbone, inputs = trained_a_step("llama", adapter)
    base = make("llama").causal.eval()
    fresh = make("llama", adapter=adapter).model.eval()
    with torch.no_grad():
        torch.testing.assert_close(fresh(**inputs).logits, base(**inputs).logits, rtol=1e-4, atol=1e-4)
        adapted = backbone.model.eval()(**inputs).logits
        assert (adapted - base(**inputs).logits).abs().max() > 0.01
        backbone.save_pretrained(tmp_path)
        again = PeftModel.from_pretrained(make("llama").causal, tmp_path).eval()
        torch.testing.assert_close(again(**inputs).logits, adapted, rtol=1e-4, atol=1e-4)
        merged = merge_adapter(backbone.model).eval()
        torch.testing.assert_close(merged(**inputs).logits, adapted, rtol=1e-4, atol=1e-4)


def test_rslora_scales_by_the_root_of_the_rank():
    def update(**settings):
        backbone = make("llama", adapter=LoRA(rank=16, alpha=8.0, target_modules=["q_proj"], **settings))
        layer = backbone.causal.model.layers[0].self_attn.q_proj
        with torch.no_grad():
            layer.lora_A["default"].weight.fill_(0.1)
            layer.lora_B["default"].weight.fill_(0.1)
        return layer.get_delta_weight("default")

    torch.testing.assert_close(update(), torch.full((64, 64), 16 * 0.01 * 8 / 16))
    torch.testing.assert_close(update(rslora=True), torch.full((64, 64), 16 * 0.01 * 8 / 4))


def test_pissa_takes_the_largest_singular_directions_out_of_the_weights():
    layer = make("llama", adapter=LoRA(rank=3, init="pissa")).causal.model.layers[0].mlp.up_proj
    own = make("llama").causal.model.layers[0].mlp.up_proj.weight
    left = torch.linalg.svdvals(layer.base_layer.weight)
    torch.testing.assert_close(left[:-3], torch.linalg.svdvals(own)[3:], rtol=1e-4, atol=1e-5)


def test_patterns_give_modules_a_rank_and_alpha_of_their_own():
    adapter = LoRA(rank=2, rank_pattern={"mlp.up_proj": 5}, alpha_pattern={"q_proj": 64})
    block = make("llama", adapter=adapter).causal.model.layers[1]
    assert block.mlp.up_proj.r["default"] == 5
    assert block.self_attn.q_proj.r["default"] == 2
    assert block.self_attn.q_proj.scaling["default"] == 32
    with pytest.raises(ValueError, match=r"LoRA rank_pattern: 'qkv' fits no adapted module; they are model.layers.0"):
        make("llama", adapter=LoRA(rank_pattern={"qkv": 4}))
    with pytest.raises(ValueError, match="ranks must be at least 1"):
        LoRA(rank_pattern={"q_proj": 0})
    with pytest.raises(ValueError, match="init must be zero or pissa"):
        LoRA(init="svd")
