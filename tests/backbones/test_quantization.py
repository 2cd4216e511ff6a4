"""Base weights in four and eight bits, by bitsandbytes' code for CPUs: training, checkpoint, adapter, merged folder."""

from importlib.util import find_spec

import pytest
import torch
from tiny_chats import cross_entropies, encode, gradients, make, two_rows

from smmd_lightning import SMMDModule
from smmd_lightning.backbones import LanguageBackbone, LoRA, Quantization, VisionLanguageBackbone
from smmd_lightning.backbones.merging import dequantize, merge_adapter

needs_bitsandbytes = pytest.mark.skipif(not find_spec("bitsandbytes"), reason="the extra quantization is not installed")
FOUR = {"bits": 4, "compute_dtype": "float32"}
BFLOAT16 = 2.0**-8
"""Its precision: plain bitsandbytes multiplies four-bit weights in it on some CPUs, whatever is asked for."""


def difference(found, expected):
    """Relative, of norms."""
    return float((found - expected).norm() / expected.norm())


def trained(settings, **adapter):
    torch.manual_seed(0)
    backbone = make("llava", quantization=Quantization(**settings), adapter=LoRA(rank=4, **adapter))
    inputs, labels = encode("llava", two_rows())
    (losses,) = backbone(inputs, labels, cross_entropies)
    losses.mean().backward()
    assert set(gradients(backbone)) == set(backbone.trainable_names())
    with torch.no_grad():
        for name in backbone.trainable_names():
            backbone.get_parameter(name).add_(0.05 * torch.randn_like(backbone.get_parameter(name)))
    return backbone, inputs


@needs_bitsandbytes
@pytest.mark.parametrize("settings", [FOUR, {**FOUR, "kind": "fp4", "double": False}, {"bits": 8}])
def test_only_the_adapter_is_trained_and_the_base_takes_a_quarter_or_half(settings):
    import bitsandbytes

    backbone, _ = trained(settings)
    layer = backbone.causal.model.language_model.layers[0].mlp.up_proj.base_layer
    assert isinstance(layer, bitsandbytes.nn.Linear4bit if settings["bits"] == 4 else bitsandbytes.nn.Linear8bitLt)
    assert layer.weight.numel() * layer.weight.element_size() == 64 * 128 * settings["bits"] // 8
    assert all(".lora_" in name for name in backbone.trainable_names())
    assert type(backbone.causal.get_output_embeddings()) is torch.nn.Linear


@needs_bitsandbytes
@pytest.mark.parametrize("adapter", [{}, {"dora": True}, {"also_train": ["model.multi_modal_projector.linear_1.bias"]}])
def test_merged_weights_answer_as_the_quantised_model_with_its_adapter(adapter):
    backbone, inputs = trained(FOUR, **adapter)
    state = {name: value.detach().clone() for name, value in backbone.named_parameters() if value.requires_grad}
    with torch.no_grad():
        expected = backbone.model.eval()(**inputs).logits
        dequantize(backbone)
        backbone.model = merge_adapter(backbone.model)
        merged = backbone.causal.eval()(**inputs).logits
        plain = make("llava", adapter=LoRA(rank=4, **adapter))
        plain.load_state_dict(state, strict=False)
        unquantised = plain.model.eval()(**inputs).logits
    torch.testing.assert_close(merged, expected, rtol=1e-4, atol=1e-4)
    assert difference(unquantised, expected) > 100 * difference(merged, expected), "the original weights would not do"
    assert type(backbone.causal.model.language_model.layers[0].mlp.up_proj) is torch.nn.Linear


@needs_bitsandbytes
def test_a_checkpoint_of_the_adapter_becomes_folders_that_answer_alike(tmp_path):
    from lightning.pytorch import Trainer
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    from datamodules import CaptionDataModule, DrawnCaptions
    from smmd_lightning.commands.export import export

    backbone = VisionLanguageBackbone("tiny:llava", quantization=Quantization(**FOUR), adapter=LoRA(rank=4))
    module = SMMDModule(backbone, save_trained_only=True)
    data = CaptionDataModule("tiny:llava", DrawnCaptions(train_size=4, val_size=2, test_size=2), batch_size=2)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "limit_val_batches": 0}
    engine = Trainer(accelerator="cpu", max_epochs=1, default_root_dir=tmp_path, enable_model_summary=False, **quiet)
    engine.fit(module, data)
    engine.save_checkpoint(tmp_path / "a.ckpt")
    inputs = encode("llava", two_rows(), answers=False)
    with torch.no_grad():
        expected = backbone.model.eval()(**inputs).logits
        folder = export(tmp_path / "a.ckpt", tmp_path / "merged")
        merged = AutoModelForImageTextToText.from_pretrained(folder).eval()
        torch.testing.assert_close(merged(**inputs).logits, expected, rtol=1e-4, atol=1e-4)
        folder = export(tmp_path / "a.ckpt", tmp_path / "adapter", adapter=True)
        base = AutoModelForImageTextToText.from_pretrained(
            backbone.causal.name_or_path, quantization_config=Quantization(**FOUR).config(), dtype=torch.float32
        )
        adapted = PeftModel.from_pretrained(base, folder).eval()
        assert difference(adapted(**inputs).logits, expected) < 4 * BFLOAT16


def test_settings_that_cannot_go_together_are_refused():
    with pytest.raises(ValueError, match="bits must be 4 or 8, got 3"):
        Quantization(bits=3)
    with pytest.raises(ValueError, match=r"cannot be trained themselves; set adapter"):
        LanguageBackbone("tiny:llama", quantization=Quantization())
    with pytest.raises(ValueError, match="new weights"):
        LanguageBackbone("tiny:llama", quantization=Quantization(), adapter=LoRA(), from_scratch=True)
    with pytest.raises(ValueError, match="pissa"):
        LanguageBackbone("tiny:llama", quantization=Quantization(), adapter=LoRA(init="pissa"))
    with pytest.raises(ValueError, match=r"model.save_trained_only"):
        SMMDModule(LanguageBackbone("tiny:llama", quantization=Quantization(), adapter=LoRA()))
