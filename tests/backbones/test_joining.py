"""Any tower with any language model: parts answer as before, and what comes out trains, answers, saves and loads."""

import json

import pytest
import torch
from PIL import Image
from tiny_chats import cross_entropies, gradients, picture

from smmd_lightning.backbones import LoRA, VisionLanguageBackbone
from smmd_lightning.backbones.joining import join
from smmd_lightning.backbones.locate import locate
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.towers import load_tower
from smmd_lightning.commands.join import main

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32, "patch_size": 8}
TOWERS = {
    "dinov2": ("Dinov2Config", {**SIZES, "mlp_ratio": 2}),
    "dinov2_with_registers": ("Dinov2WithRegistersConfig", {**SIZES, "mlp_ratio": 2, "num_register_tokens": 2}),
    "clip": ("CLIPVisionConfig", {**SIZES, "intermediate_size": 48}),
    "siglip": ("SiglipVisionConfig", {**SIZES, "intermediate_size": 48, "vision_use_head": False}),
    "vit": ("ViTConfig", {**SIZES, "intermediate_size": 48}),
}
TEXT = {"vocab_size": 384, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
LANGUAGES = {
    "llama": ("LlamaConfig", {**TEXT, "num_key_value_heads": 2}),
    "qwen3_tied": ("Qwen3Config", {**TEXT, "num_key_value_heads": 2, "head_dim": 12, "tie_word_embeddings": True}),
    "gemma_tied": ("GemmaConfig", {**TEXT, "num_key_value_heads": 2, "head_dim": 12}),
    "gpt_neox": ("GPTNeoXConfig", {**TEXT, "tie_word_embeddings": False}),
}


def write_tower(name, folder):
    import transformers

    kind, sizes = TOWERS[name]
    torch.manual_seed(1)
    transformers.AutoModel.from_config(getattr(transformers, kind)(**sizes)).save_pretrained(folder)
    transformers.CLIPImageProcessor(image_mean=[0.4] * 3, image_std=[0.2] * 3).save_pretrained(folder)
    return str(folder)


def write_language(name, folder, template=True):
    import transformers

    kind, sizes = LANGUAGES[name]
    tokenizer = transformers.AutoTokenizer.from_pretrained(locate("tiny:qwen2"))
    if not template:
        tokenizer.chat_template = None
    sizes = {**sizes, "vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, "pad_token_id": 0}
    torch.manual_seed(2)
    transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def encode(path, answers=True):
    processor = load_processor(path)
    content = [{"type": "image"}, {"type": "text", "text": "What time is it?"}]
    chats = [[{"role": "user", "content": content}] for _ in range(2)]
    texts = [processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    images = [picture(0), picture(1, (96, 48))]
    inputs = dict(processor(text=texts, images=images, padding=True, return_tensors="pt", add_special_tokens=False))
    labels = torch.full_like(inputs["input_ids"], -100)
    labels[:, -4:] = inputs["input_ids"][:, -4:]
    return (inputs, labels) if answers else inputs


@pytest.mark.parametrize(
    ("tower", "language"),
    [(tower, "llama") for tower in TOWERS] + [("dinov2", language) for language in LANGUAGES if language != "llama"],
)
def test_a_joined_model_keeps_its_parts_and_goes_through_training(tower, language, tmp_path):
    from transformers import AutoModelForCausalLM

    seen, spoken = write_tower(tower, tmp_path / "tower"), write_language(language, tmp_path / "language")
    folder = join(seen, spoken, tmp_path / "joined")
    backbone = VisionLanguageBackbone(str(folder), adapter=LoRA(rank=2, also_train=["model.multi_modal_projector"]))
    backbone.load()
    causal, alone = backbone.causal, AutoModelForCausalLM.from_pretrained(spoken).eval()
    ids = torch.arange(3, 20)[None]
    with torch.no_grad():
        own = causal.eval()(input_ids=ids).logits[..., : alone.config.vocab_size]
        torch.testing.assert_close(own, alone(input_ids=ids).logits, rtol=1e-5, atol=1e-5)
        pixels = torch.randn(2, 3, 32, 32)
        after = causal.model.vision_tower(pixel_values=pixels, output_hidden_states=True).hidden_states[-1]
        before = load_tower(seen)(pixel_values=pixels, output_hidden_states=True).hidden_states[-1]
        assert torch.equal(after, before)
    tied = causal.get_output_embeddings().weight is causal.get_input_embeddings().weight
    assert tied == alone.config.tie_word_embeddings
    assert causal.generation_config.eos_token_id == alone.generation_config.eos_token_id
    inputs, labels = encode(str(folder))
    image_id = causal.config.image_token_id
    assert (inputs["input_ids"] == image_id).sum(1).tolist() == [16 + 2 * ("registers" in tower)] * 2
    backbone.train()
    (losses,) = backbone(inputs, labels, cross_entropies)
    losses.mean().backward()
    assert any("multi_modal_projector" in name for name in gradients(backbone))
    tokens = backbone.generate(encode(str(folder), answers=False), max_new_tokens=3)
    assert tokens.shape[0] == 2


def test_the_picture_reaches_the_answer_whole_and_the_template_stays(tmp_path):
    seen, spoken = write_tower("dinov2", tmp_path / "tower"), write_language("llama", tmp_path / "language")
    folder = join(seen, spoken, tmp_path / "joined", image_size=64)
    processor = load_processor(str(folder))
    own = load_processor(spoken)
    chat = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "12"}]
    assert processor.apply_chat_template(chat, tokenize=False) == own.apply_chat_template(chat, tokenize=False)
    assert processor.tokenizer.encode("12:34 <image>")[:-1] == own.encode("12:34 ")
    wide = Image.new("RGB", (80, 20), "red")
    pixels = processor.image_processor(wide, return_tensors="pt")["pixel_values"]
    assert pixels.shape == (1, 3, 64, 64)
    red = pixels[0, 0] > pixels[0, 1] + 1
    assert red[24:40].float().mean() > 0.9, "the picture lies in the middle, its sides not cut off"
    assert not red[:20].any()
    torch.testing.assert_close(pixels[0, 0, 32, 32], torch.tensor((1 - 0.4) / 0.2))
    assert json.loads((folder / "joined_from.json").read_text())["image_size"] == 64


def test_a_language_model_without_a_template_gets_a_plain_one(tmp_path):
    spoken = write_language("llama", tmp_path / "language", template=False)
    folder = join(write_tower("vit", tmp_path / "tower"), spoken, tmp_path / "joined")
    text = load_processor(str(folder)).apply_chat_template(
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}],
        tokenize=False,
        add_generation_prompt=True,
    )
    assert text == "USER: <image>\nWhy?\nASSISTANT:"


def test_same_seed_same_projector_and_the_global_generator_stays(tmp_path):
    seen, spoken = write_tower("dinov2", tmp_path / "tower"), write_language("llama", tmp_path / "language")
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    first, again, other = (
        join(seen, spoken, tmp_path / str(n), seed=n // 2).joinpath("model.safetensors") for n in range(3)
    )
    assert torch.equal(torch.rand(2), expected)
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()


def test_what_does_not_fit_is_refused_with_the_reason(tmp_path, capsys):
    import transformers

    seen, spoken = write_tower("clip", tmp_path / "tower"), write_language("llama", tmp_path / "language")
    with pytest.raises(ValueError, match="image_size must be a multiple of 8 pixels"):
        join(seen, spoken, tmp_path / "a", image_size=60)
    with pytest.raises(ValueError, match=r"cannot read pictures of 64 x 64 pixels.*its own image_size is 32"):
        join(seen, spoken, tmp_path / "a", image_size=64)
    with pytest.raises(ValueError, match="gives no row of tokens for square patches"):
        load_tower(spoken)
    with pytest.raises(ValueError, match="gives no row of tokens"):
        load_tower(locate("tiny:qwen2.5-vl"))
    sizes = {**LANGUAGES["llama"][1], "head_dim": 12, "final_logit_softcapping": 0.5, "vocab_size": 400}
    torch.manual_seed(0)
    capped = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**sizes, initializer_range=0.5))
    capped.save_pretrained(tmp_path / "capped")
    load_processor(spoken).save_pretrained(tmp_path / "capped")
    with pytest.raises(SystemExit, match="the language model answers otherwise inside LLaVA's layout"):
        main(["--tower", seen, "--language", str(tmp_path / "capped"), "--out", str(tmp_path / "a")])
    assert not (tmp_path / "a").exists(), "nothing is left of a refused pair"
    main(["--tower", "tiny:llava", "--language", "tiny:llama", "--out", str(tmp_path / "b")])
    assert capsys.readouterr().out.strip() == str(tmp_path / "b")
    with pytest.raises(SystemExit, match="not empty"):
        main(["--tower", seen, "--language", spoken, "--out", str(tmp_path / "b")])
