"""The tower with a convolutional stem: what its patches see, and that its folders load like any other's."""

import subprocess
import sys

import pytest
import torch
from tiny_chats import encode, make, two_rows

from smmd_lightning.backbones.tiny import presets as tiny
from smmd_lightning.backbones.tiny.tower import ConvolutionalStem, StemmedCLIPVisionModel
from smmd_lightning.backbones.tiny.tower_config import StemmedCLIPVisionConfig


@pytest.mark.parametrize("patch", [4, 8, 16, 32])
def test_one_vector_a_patch_from_all_of_its_pixels_and_some_around(patch):
    torch.manual_seed(0)
    stem = ConvolutionalStem(3, 32, patch)
    pixels = torch.randn(1, 3, 4 * patch, 4 * patch, requires_grad=True)
    features = stem(pixels)
    assert features.shape == (1, 32, 4, 4)
    features[0, :, 1, 2].square().sum().backward()
    seen = pixels.grad[0].abs().sum(0) > 0
    rows, columns = seen.any(1).nonzero()[:, 0], seen.any(0).nonzero()[:, 0]
    for pixel, cell in ((rows, 1), (columns, 2)):
        assert (int(pixel[0]), int(pixel[-1])) == (cell * patch - patch + 2, cell * patch + patch)
    assert seen[patch : 2 * patch, 2 * patch : 3 * patch].all()


@pytest.mark.parametrize("patch", [1, 2, 12, 20])
def test_patches_that_cannot_be_halved_are_refused(patch):
    with pytest.raises(ValueError, match=f"patch_size of 4, 8, 16, … pixels, got {patch}"):
        ConvolutionalStem(3, 64, patch)


def test_hidden_sizes_that_cannot_be_halved_are_refused():
    with pytest.raises(ValueError, match="hidden_size must be a multiple of 4 for patch_size 16, got 30"):
        ConvolutionalStem(3, 30, 16)


def test_fresh_kernels_keep_the_scale_of_what_passes():
    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 8}
    tower = StemmedCLIPVisionModel(StemmedCLIPVisionConfig(image_size=64, patch_size=16, **sizes))
    (stem,) = (part for part in tower.modules() if isinstance(part, ConvolutionalStem))
    for layer in (part for part in stem if isinstance(part, torch.nn.Conv2d)):
        fan_in = layer.weight[0].numel()
        assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.1)
        assert not layer.bias.any()


def test_pixels_take_the_towers_dtype():
    backbone = make("clock-varied", dtype="bfloat16")
    inputs = encode("clock-varied", two_rows(), answers=False)
    assert inputs["pixel_values"].dtype == torch.float32
    assert backbone.model(**inputs).logits.dtype == torch.bfloat16


def test_a_folder_loads_in_a_process_that_never_saw_its_preset(tmp_path):
    tiny.write(tiny.PRESETS["clock-varied"], tmp_path)
    code = f"""
import sys
from smmd_lightning.backbones import VisionLanguageBackbone
from smmd_lightning.backbones.processors import load_processor
load_processor({str(tmp_path)!r})
assert "transformers.models.clip.modeling_clip" not in sys.modules  # heavy; a processor does without
backbone = VisionLanguageBackbone({str(tmp_path)!r})
backbone.load()
print(type(backbone.model.model.vision_tower).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "StemmedCLIPVisionModel"
