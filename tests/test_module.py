"""The module in Python, without the command line."""

import functools

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback

from datamodules import ClockDataModule, DrawnClocks
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LoRA, VisionLanguageBackbone
from smmd_lightning.schedules import WarmUpAndDecay, WarmupDecay

QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "use_distributed_sampler": False,
}


def clocks(**settings):
    drawn = DrawnClocks(train_size=8, val_size=6, test_size=5, style="plain", image_size=64)
    return ClockDataModule("tiny:llava", drawn, batch_size=4, **settings)


def module(**settings):
    torch.manual_seed(0)
    backbone = VisionLanguageBackbone("tiny:llava", **settings.pop("backbone", {}))
    return SMMDModule(backbone, SMMDLoss(), 0.5, functools.partial(torch.optim.AdamW, lr=1e-3), **settings)


def fit(tmp_path, made, data=None, **settings):
    trainer = Trainer(**QUIET | {"default_root_dir": tmp_path, "max_epochs": 1} | settings)
    trainer.fit(made, data or clocks())
    return trainer


def test_a_checkpoint_of_a_module_built_by_hand_loads_by_path_alone(tmp_path):
    made = module(lr_scheduler=functools.partial(WarmupDecay, warmup_steps=1))
    trainer = fit(tmp_path, made)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    assert torch.load(tmp_path / "a.ckpt", weights_only=True)["global_step"] == 2
    loaded = SMMDModule.load_from_checkpoint(tmp_path / "a.ckpt")
    for name, value in made.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value)
    assert loaded.hparams == made.hparams
    assert loaded.objective.loss_weight == 0.5


def test_a_backbone_that_is_loaded_already_is_trained_as_it_is(tmp_path):
    made = module()
    made.backbone.load()
    head = made.backbone.causal.get_output_embeddings().weight
    fit(tmp_path, made)
    assert made.backbone.causal.get_output_embeddings().weight is head
    assert made.tokenizer is not None


@pytest.mark.parametrize("backbone", [{"adapter": LoRA(rank=2)}, {"freeze_language": True}], ids=["lora", "frozen"])
def test_checkpoints_of_trained_weights_only_hold_no_more_and_load(tmp_path, backbone):
    made = module(backbone=backbone, save_trained_only=True)
    trainer = fit(tmp_path, made)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    kept = set(torch.load(tmp_path / "a.ckpt", weights_only=True)["state_dict"])
    assert kept == {name for name, parameter in made.named_parameters() if parameter.requires_grad}
    assert len(kept) < len(list(made.parameters()))
    loaded = SMMDModule.load_from_checkpoint(tmp_path / "a.ckpt")
    for name, value in made.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], value)


def test_the_weight_of_the_numeric_loss_follows_its_schedule(tmp_path):
    made = module(weight_schedule=WarmUpAndDecay(warmup_steps=1, decay="linear"))
    seen = []

    class Listener(Callback):
        def on_train_batch_end(self, trainer, *_):
            found = {name: trainer.callback_metrics[f"train/{name}"].item() for name in ("loss_weight", "loss", "ce")}
            seen.append((found["loss_weight"], found["loss"] - found["ce"]))

    trainer = fit(tmp_path, made, callbacks=[Listener()], max_epochs=2)
    assert [weight for weight, _ in seen] == pytest.approx([0.25, 0.5, 1 / 3, 1 / 6])
    numeric = trainer.callback_metrics["train/numeric"].item()
    assert seen[-1][1] == pytest.approx(numeric / 6, rel=1e-4)
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    assert SMMDModule.load_from_checkpoint(tmp_path / "a.ckpt").weight_schedule == made.weight_schedule


def test_a_checkpoint_that_does_not_fit_is_refused_with_the_names(tmp_path):
    made = module()
    made.configure_model()
    state = made.state_dict()
    name = next(name for name in state if name.endswith("q_proj.weight"))
    state["backbone.model.nothing"] = state.pop(name)
    before = {key: value.clone() for key, value in made.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"(?s)missing in the checkpoint \(1\).*q_proj.*unknown.*\(1\).*nothing"):
        made.load_state_dict(state)
    assert all(torch.equal(before[key], value) for key, value in made.state_dict().items())


def test_training_logs_means_over_optimizer_steps(tmp_path):
    made = module()
    trainer = fit(tmp_path, made, accumulate_grad_batches=2)
    logged = trainer.callback_metrics
    assert trainer.global_step == 1
    assert logged["train/loss"] == pytest.approx(float(logged["train/ce"] + 0.5 * logged["train/numeric"]))
    assert 0 < logged["train/numeric_share"] < 1
    assert {"val/ce", "val/numeric", "val/loss", "val/exact_match", "val/median_error_minutes"} <= set(logged)


class Held(Callback):
    """Notes at each micro-batch whether gradients are held through its forward pass."""

    def __init__(self):
        self.seen = []

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.seen.append(any(parameter.grad is not None for parameter in pl_module.parameters()))


def test_gradients_of_a_step_are_gone_before_the_next_forward_pass(tmp_path):
    held = Held()
    fit(tmp_path, module(), accumulate_grad_batches=2, max_epochs=2, limit_val_batches=0, callbacks=[held])
    assert held.seen == [False, True, False, True]


class Gradients(Callback):
    """Keeps the gradients of the optimizer step, before they are used."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        named = pl_module.named_parameters()
        self.seen = {name: value.grad.clone() for name, value in named if value.grad is not None}


@pytest.mark.parametrize("cut", [(8, 1), (4, 2), (2, 4), (3, 3)])
def test_accumulation_gives_the_gradients_of_one_large_batch(tmp_path, cut):
    """To 1e-5 of each gradient's norm: float32 adds up in another order."""
    batch_size, accumulate = cut
    drawn = DrawnClocks(train_size=8, val_size=1, test_size=1, style="plain", image_size=64)
    data = ClockDataModule("tiny:llava", drawn, batch_size=batch_size, generation_limit=0)
    made, kept = module(), Gradients()
    fit(tmp_path, made, data, accumulate_grad_batches=accumulate, limit_val_batches=0, callbacks=[kept])
    whole = module()
    whole.configure_model()
    batch = next(iter(ClockDataModule("tiny:llava", drawn, batch_size=8).train_dataloader()))
    whole.objective(whole.backbone, batch.inputs, batch.labels).loss.backward()
    expected = {name: value.grad for name, value in whole.named_parameters() if value.grad is not None}
    assert kept.seen.keys() == expected.keys()
    largest = max(gradient.norm() for gradient in expected.values())
    for name, gradient in expected.items():
        allowed = 1e-5 * max(
            gradient.norm(), 1e-3 * largest
        )  # some, as of a bias before a softmax, are 0 but for rounding
        assert (kept.seen[name] - gradient).norm() <= allowed, name


def test_validation_loss_is_a_mean_over_all_tokens_whatever_the_batches(tmp_path):
    losses = []
    for size in (1, 4, 6):
        made = module()
        trainer = Trainer(**QUIET, default_root_dir=tmp_path)
        losses.append(trainer.validate(made, clocks(eval_batch_size=size), verbose=False)[0]["val/loss"])
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)


def test_training_weights_in_bfloat16_is_refused_and_computing_in_it_is_not(tmp_path):
    with pytest.raises(ValueError, match=r"trained weights are in half precision.*bf16-mixed"):
        fit(tmp_path, module(), precision="bf16-true")
    trainer = fit(tmp_path, module(), precision="bf16-mixed")
    assert torch.isfinite(trainer.callback_metrics["train/loss"])


def test_predict_returns_a_row_for_every_sample(tmp_path):
    trainer = Trainer(**QUIET, default_root_dir=tmp_path)
    batches = trainer.predict(module(), clocks(eval_batch_size=2))
    rows = [row for batch in batches for row in batch]
    assert [row["id"] for row in rows] == [f"test-{number}" for number in range(5)]
    assert all(row["prompt"].startswith("What time") for row in rows)


def test_nothing_to_train_and_impossible_settings_are_errors(tmp_path):
    frozen = {"freeze_language": True, "freeze_vision": True, "freeze_projector": True}
    with pytest.raises(ValueError, match="every parameter is frozen"):
        fit(tmp_path, module(backbone=frozen))
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1, got 0"):
        module(max_new_tokens=0)


def test_answers_that_the_limit_cuts_off_are_counted_and_said(tmp_path):
    made = module(max_new_tokens=1)
    trainer = Trainer(**QUIET, default_root_dir=tmp_path)
    with pytest.warns(UserWarning, match=r"100% of the answers were cut off by model.max_new_tokens=1 .* Raise it"):
        trainer.test(made, clocks(), verbose=False)
    assert trainer.callback_metrics["test/cut_off"] == 1


@pytest.mark.parametrize("own_end", [None, 0, [0, 9]])
def test_an_answer_whose_end_token_is_the_last_one_allowed_is_not_cut_off(tmp_path, own_end, monkeypatch):
    made = module(max_new_tokens=3)
    made.backbone.load()
    data = clocks()
    end = data.collator.stop_ids[0] if own_end is None else 0
    if own_end is not None:  # of a data module that names no end token, the model's own count, number 0 too
        monkeypatch.setattr(type(data.collator), "stop_ids", [])
        made.backbone.causal.generation_config.eos_token_id = own_end
    other = end + 1
    made.backbone.generate = lambda inputs, **_: torch.tensor([[other, other, end]] * len(inputs["input_ids"]))
    trainer = Trainer(**QUIET, default_root_dir=tmp_path)
    trainer.test(made, data, verbose=False)
    assert trainer.callback_metrics["test/cut_off"] == 0


@pytest.mark.parametrize("decode", ["greedy", "median", "mean"])
def test_likely_answers_give_proper_scores_and_the_greedy_answer_is_told_beside_another(tmp_path, decode):
    made = module(max_new_tokens=5, decode=decode, likely_answers=6)
    trainer = Trainer(**QUIET | {"default_root_dir": tmp_path})
    (values,) = trainer.test(made, clocks(), verbose=False)
    assert values["test/samples"] == 5
    assert {"test/mass_left_out", "test/without_distribution", "test/penalised_mae_median"} <= values.keys()
    rows = [row for batch in trainer.predict(made, clocks()) for row in batch]
    assert len(rows) == 5
    for row in rows:
        assert ("greedy" in row) == (decode != "greedy")
        if "law" in row and decode != "greedy":
            assert row["raw"] == row["law"][decode] or row["parsed"] == row["law"][decode]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decode": "median"}, "set likely_answers"),
        ({"decode": "best", "likely_answers": 4}, "decode must be greedy, median or mean, got 'best'"),
        ({"likely_answers": 1}, "likely_answers must be 0 or at least 2, got 1"),
    ],
)
def test_settings_of_decoding_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        module(**settings)
