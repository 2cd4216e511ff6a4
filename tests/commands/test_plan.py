"""What a run needs, counted without weights, beside what the real model has and keeps."""

import pytest
import torch

from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
from smmd_lightning.backbones.footprint import footprint, saved_bytes
from smmd_lightning.commands.plan import main, plan

BACKBONES = {
    "full": lambda: LanguageBackbone("tiny:llama"),
    "tied": lambda: LanguageBackbone("tiny:qwen2"),
    "lora": lambda: LanguageBackbone("tiny:llama", adapter=LoRA(rank=4, dora=True)),
    "checkpointed": lambda: VisionLanguageBackbone("tiny:qwen2.5-vl", gradient_checkpointing=True),
    "projector": lambda: VisionLanguageBackbone(
        "tiny:llava", adapter=LoRA(rank=4, also_train=["model.multi_modal_projector"])
    ),
    "half": lambda: LanguageBackbone("tiny:llama", dtype="bfloat16"),
}


@pytest.mark.parametrize("name", BACKBONES)
def test_counts_are_those_of_the_real_model(name):
    backbone = BACKBONES[name]()
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    need = footprint(backbone, rows=2, positions=48, supervised=10, compute="float32")
    assert torch.equal(torch.rand(1), expected)
    assert not backbone.loaded
    backbone.load()
    parameters = list(backbone.parameters())
    assert need.parameters == sum(parameter.numel() for parameter in parameters)
    assert need.weights == sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    if name not in ("checkpointed",):  # of which a loaded model freezes what no feature depends on
        trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
        assert need.trained == trained
    optimizer = torch.optim.AdamW([p for p in parameters if p.requires_grad])
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    states = sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if value.ndim  # the count of steps is no tensor of the parameter's size
    )
    if name != "checkpointed":
        assert need.optimizer == states
    real = saved_bytes(
        backbone.causal.get_decoder(), 2, 48, backbone.config.get_text_config().hidden_size, torch.float32
    )
    assert need.activations == pytest.approx(real, rel=0.2), "a CPU's attention keeps less than the traced one"


def test_a_plan_tells_tokens_steps_and_shares_of_sharding():
    config = ["--config", "configs/experiment/quickstart.yaml"]
    found = plan(config, compute="float32")
    assert found["image_tokens"] == 16
    assert found["steps"] == 2500
    assert found["samples"] == 2500 * 48
    shared = plan(config, compute="float32", gpus=4, sharded=True)
    assert shared["bytes"]["weights"] == found["bytes"]["weights"] // 4
    assert shared["bytes"]["activations"] == found["bytes"]["activations"]
    assert found["bytes"]["total"] == sum(size for part, size in found["bytes"].items() if part != "total")
    assert shared["samples"] == 4 * found["samples"]


def test_what_cannot_fit_is_refused_with_the_settings_that_help(capsys):
    config = ["--config", "configs/experiment/quickstart.yaml"]
    main([*config, "--memory", "1"])
    assert "hours at 2e+14 a second and GPU" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"(?s)do not fit into.*gradient_checkpointing: true.*adapter: .*fsdp2.yaml"):
        main([*config, "--memory", "0.001"])
    with pytest.raises(SystemExit, match="loss_weight"):
        main([*config, "--model.loss_weight=-1"])
