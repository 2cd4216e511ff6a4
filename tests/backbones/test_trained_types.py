"""Weights that are trained move, whatever type the model was loaded in."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "cases"))
from tiny_runs import RowsData, module, trainer

from datamodules import ClockDataModule, DrawnClocks
from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
from smmd_lightning.backbones.trained_types import check_trained_type, refuse_half_precision

HEAD = LoRA(rank=2, also_train=["lm_head.*"])


@pytest.mark.parametrize("adapter", [None, HEAD], ids=["full", "also_train"])
def test_trained_weights_of_a_model_in_bfloat16_are_float32_and_move(tmp_path, adapter):
    made = module(backbone=LanguageBackbone("tiny:llama", dtype="bfloat16", adapter=adapter), lr=1e-5)
    made.configure_model()
    made.backbone.float()
    before = {name: value.clone() for name, value in made.named_parameters()}
    made = module(backbone=LanguageBackbone("tiny:llama", dtype="bfloat16", adapter=adapter), lr=1e-5)
    trainer(tmp_path, precision="bf16-mixed", max_epochs=-1, max_steps=8).fit(made, RowsData())
    for name, value in made.named_parameters():
        assert value.dtype == (torch.float32 if value.requires_grad else torch.bfloat16), name
        if value.requires_grad and "lora" not in name and "embed" not in name:  # rows of words that occur nowhere rest
            moved = (value != before[name]).float().mean()
            assert moved > 0.95, (name, float(moved))


@pytest.mark.parametrize(
    ("precision", "sharded", "settings", "message"),
    [
        ("bf16-true", False, {}, r"trainer\.precision=bf16-true .*Take bf16-mixed"),
        ("32-true", False, {"dtype": "bfloat16"}, r"backbone\.dtype=bfloat16: .*Take trainer\.precision=bf16-mixed"),
        ("32-true", False, {"dtype": "float16", "adapter": HEAD}, r"backbone\.dtype=float16: "),
        ("32-true", True, {"dtype": "bfloat16"}, r"Take dtype: float32 .*compute_dtype"),
    ],
)
def test_settings_that_would_round_updates_away_are_refused_before_weights_load(precision, sharded, settings, message):
    with pytest.raises(ValueError, match=message):
        check_trained_type(precision, sharded, LanguageBackbone("tiny:llama", **settings))


def test_adapters_and_mixed_precision_are_let_through():
    check_trained_type("32-true", True, LanguageBackbone("tiny:llama", dtype="bfloat16", adapter=LoRA(rank=2)))
    check_trained_type("bf16-mixed", False, LanguageBackbone("tiny:llama", dtype="bfloat16"))
    check_trained_type("32-true", False, LanguageBackbone("tiny:llama"))


def test_a_files_own_half_precision_is_found_when_it_is_loaded():
    low = torch.nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match=r"1 trained weights are in half precision \(head, …\)"):
        refuse_half_precision([("tower", torch.nn.Parameter(torch.zeros(2))), ("head", low)], sharded=False)


@pytest.mark.parametrize("block", [0, 1])  # image features come out of the first; nothing hangs on the second
def test_a_tower_in_bfloat16_of_which_a_block_is_trained_takes_a_step(tmp_path, block):
    adapter = LoRA(rank=2, also_train=[f"model.vision_tower.encoder.layers.{block}.*"])
    made = module(backbone=VisionLanguageBackbone("tiny:llava", dtype="bfloat16", adapter=adapter), lr=1e-3)
    drawn = DrawnClocks(train_size=2, val_size=2, test_size=2, style="plain", image_size=64)
    trainer(tmp_path, precision="bf16-mixed", max_epochs=-1, max_steps=1).fit(
        made, ClockDataModule("tiny:llava", drawn, batch_size=2)
    )
    norms = [part for part in made.backbone.modules() if isinstance(part, torch.nn.LayerNorm)]
    assert norms
    assert all(norm.weight.dtype == torch.float32 for norm in norms)
