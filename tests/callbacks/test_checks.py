"""Settings that cannot work together stop a run before its weights load and before its folder holds anything."""

import warnings
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import FSDPStrategy
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from smmd_lightning.backbones import LanguageBackbone, LoRA, Quantization
from smmd_lightning.backbones.checking import check_names
from smmd_lightning.callbacks.checks import check_optimizer, check_strategy
from smmd_lightning.callbacks.trainer_checks import check_precision, check_trainer_settings
from smmd_lightning.cli import main
from smmd_lightning.optimizers import MuonAdamW
from smmd_lightning.strategies import FSDP1Strategy, FSDP2Strategy

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = str(ROOT / "configs" / "experiment" / "quickstart.yaml")
LORA = "--model.backbone.init_args.adapter"
PLATEAU = (
    '--model.lr_scheduler={"class_path": "lightning.pytorch.cli.ReduceLROnPlateau", "init_args": {"monitor": "%s"}}'
)

IMPOSSIBLE = {
    "lambda below 0": (
        ["--model.loss_weight=-0.1"],
        r"loss_weight must be a finite number of at least 0, or auto, got -0\.1",
    ),
    "no accumulation": (["--trainer.accumulate_grad_batches=0"], "accumulate_grad_batches must be at least 1, got 0"),
    "targets of nothing": (
        [f"{LORA}.rank=2", f"{LORA}.target_modules=[q_prj]"],
        r"target_modules \['q_prj'\] fit no linear layer.*'q_proj'",
    ),
    "also trained nothing": (
        [f"{LORA}.rank=2", f"{LORA}.also_train=[model.nothing.*]"],
        r"pattern 'model\.nothing\.\*' fits no parameter of",
    ),
    "frozen nothing": (["--model.backbone.init_args.freeze=[model.nothing]"], "pattern 'model.nothing' fits no param"),
    "no answers to monitor": (
        ["--data.init_args.generation_limit=0", "--checkpoint.monitor=val/exact_match", "--checkpoint.mode=max"],
        r"waits for 'val/exact_match'.*generation_limit=0 generates none.*val/loss",
    ),
    "images over the limit": (
        ["--data.init_args.max_length=20"],
        r"None of the first 8 training samples fits: sample train-0-0 has \d+ tokens with 1 image\(s\), the limit is "
        r"max_length=20\. Raise max_length.*max_pixels",
    ),
    "packed pictures": (["--data.init_args.pack=true"], r"pack=true is for text.*Set pack to false"),
    "image option misspelt": (["--data.init_args.image_options={max_pixel: 3}"], "option 'max_pixel'.*has no such set"),
    "question without its place": (["--data.init_args.fallback_template=Q:"], r"must hold \{prompt\}.*got 'Q:'"),
    "minutes that end nowhere": (["--data.init_args.clocks.init_args.minute_step=7"], r"minute_step must .*got 7"),
    "no such file": (
        ["--data.init_args.clocks={class_path: datamodules.ClockFiles, init_args: {train: nowhere.csv}}"],
        r"nowhere\.csv",
    ),
    "no numbers to learn": (
        ["--model.vocabulary.largest=0"],
        r"has only one number in its table.*largest=0.*train without a numeric loss",
    ),
    "float16 on a CPU": (
        ["--trainer.precision=16-mixed"],
        "trainer.precision=16-mixed: a CPU does not train in float16",
    ),
    "a model of another kind": (
        ["--model.backbone.init_args.path=tiny:llama"],
        r"reads text only, but sample train-0-0 has an image\. Use a vision-language model",
    ),
    "no such tiny model": (["--model.backbone.init_args.path=tiny:quen2-vl"], "no tiny preset 'quen2-vl'.*qwen2-vl"),
    "no such folder": (["--model.backbone.init_args.path=./nowhere"], "no model at './nowhere'"),
    "no model at all": (["--model.backbone.init_args.path="], r"no model at '' \(model\.backbone\.init_args\.path"),
    "sharding without a GPU": (["--trainer.strategy=fsdp"], r"trainer\.strategy=fsdp would load.*FSDP2Strategy"),
    "validation never": (["--trainer.val_check_interval=0"], "val_check_interval must be above 0, got 0.*limit_val"),
    "clipping below 0": (["--trainer.gradient_clip_val=-1"], r"gradient_clip_val must be at least 0, got -1"),
    "seed below 0": (["--seed_everything=-1"], "seed_everything must lie between 0 and 4294967295, got -1"),
    "no row in a batch": (["--data.init_args.batch_size=0"], r"^batch_size must be at least 1, got 0\.$"),
    "watched metric misspelt": (
        ["--model.watch=median_eror_minutes"],
        r"model\.watch='median_eror_minutes' is no metric.*median_error_minutes",
    ),
    "bandwidth below 0": (
        ["--model.numeric_loss.init_args.bandwidths=[-2]"],
        r"^each of bandwidths must be a finite number from 1e-06 to 1e\+06, got -2\.0\.$",
    ),
    "misspelt metric to monitor": (
        ["--checkpoint.monitor=val/exact_mach"],
        r"whether more or less of the metric 'val/exact_mach' is better\. Do you mean 'exact_match'\?",
    ),
    "learning rate below 0": (
        ["--model.optimizer.init_args.lr=-0.001"],
        r"model\.optimizer cannot be made with these settings: Invalid learning rate: -0\.001",
    ),
    "learning rate below 0, adapter": (
        [f"{LORA}.rank=2", "--model.optimizer.init_args.lr=-0.001"],
        r"model\.optimizer cannot be made with these settings: Invalid learning rate: -0\.001",
    ),
    "matrices alone": (
        ["--model.optimizer=torch.optim.Muon", "--model.optimizer.lr=0.001"],
        r"model\.optimizer cannot be made.*Muon only supports 2D parameters",
    ),
    "learning rate of a part that does not exist": (
        ["--model.lr_scale={model.projector.*: 3.0}"],
        r"model\.lr_scale cannot be made with these settings: lr_scale: \['model.projector.\*'\] fit no trained",
    ),
    "averaging that cannot go on": (
        [
            "--trainer.callbacks+=lightning.pytorch.callbacks.StochasticWeightAveraging",
            "--trainer.callbacks.swa_lrs=0.001",
        ],
        "StochasticWeightAveraging exchanges.*EMAWeightAveraging",
    ),
    "a plateau without validation": (
        [PLATEAU % "val/loss", "--trainer.limit_val_batches=0"],
        r"model\.lr_scheduler: ReduceLROnPlateau.*waits for a validation, but trainer\.limit_val_batches=0",
    ),
    "a plateau the wrong way": (
        [PLATEAU % "val/exact_match"],
        r"ReduceLROnPlateau.*mode=min, but more of val/exact_match is better\. Set mode: max",
    ),
    "decay without an end": (
        ["--trainer.max_steps=-1", "--trainer.max_time=00:00:00:05"],
        r"model\.lr_scheduler decays over the whole training, but neither trainer\.max_steps nor.*decay: constant",
    ),
    "weight that decays without an end": (
        [
            "--trainer.max_steps=-1",
            "--trainer.max_time=00:00:00:05",
            "--model.lr_scheduler.init_args.decay=constant",
            "--model.weight_schedule={warmup_steps: 3}",
        ],
        r"model\.weight_schedule decays over the whole training",
    ),
    "warm-up below 0": (
        ["--model.lr_scheduler.init_args.warmup_steps=-1"],
        r"model\.lr_scheduler cannot be made with these settings: warmup_steps must be at least 0, got -1",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_combinations_stop_before_weights_load(name, tmp_path, monkeypatch):
    def build(backbone):
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("smmd_lightning.backbones.base.build", build)
    arguments, message = IMPOSSIBLE[name]
    cpu = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--data.init_args.num_workers=0"]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        main(["fit", "--config", QUICKSTART, "--run_dir", str(tmp_path / "run"), *cpu, *arguments])
    # Nothing stands in the way of the same command, mended.
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_model_that_cannot_be_had_is_named_with_its_setting(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("owner/nothing-of-this-name", str(tmp_path)):
        with pytest.raises((OSError, ValueError), match=rf"(?s){name}.*model\.backbone\.init_args\.path"):
            main(
                [
                    "fit",
                    "--config",
                    QUICKSTART,
                    "--run_dir",
                    str(tmp_path / "r"),
                    f"--model.backbone.init_args.path={name}",
                ]
            )


def test_a_metric_that_validation_never_logs_is_found_before_training(tmp_path):
    arguments = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.num_sanity_val_steps=1"]
    small = ["--data.init_args.num_workers=0", "--data.init_args.batch_size=2", "--model.max_new_tokens=1"]
    small += ["--checkpoint.monitor=val/something_else", "--checkpoint.mode=min"]
    with pytest.raises(ValueError, match=r"waits for 'val/something_else', but validation logs only .*val/exact_match"):
        main(["fit", "--config", QUICKSTART, "--run_dir", str(tmp_path / "run"), *arguments, *small])


def test_without_a_sanity_check_the_weights_are_kept_all_the_same(tmp_path):
    arguments = ["--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.num_sanity_val_steps=0"]
    small = ["--data.init_args.num_workers=0", "--data.init_args.batch_size=2", "--model.max_new_tokens=1"]
    small += ["--checkpoint.monitor=val/something_else", "--checkpoint.mode=min"]
    small += ["--trainer.val_check_interval=2", "--data.init_args.limit=4"]
    with pytest.raises(MisconfigurationException, match="something_else"):
        main(["fit", "--config", QUICKSTART, "--run_dir", str(tmp_path / "run"), *arguments, *small])
    kept = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)
    assert kept["global_step"] == 2


def test_looking_up_names_changes_neither_backbone_nor_random_numbers():
    backbone = LanguageBackbone("tiny:llama", adapter=LoRA(rank=2), freeze=["model.embed_tokens"])
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_names(backbone)
    assert torch.equal(torch.get_rng_state(), before)
    assert not backbone.loaded
    assert not list(backbone.parameters())


def test_an_optimizer_that_wants_memory_is_left_to_the_real_parameters():
    class Module:
        backbone = LanguageBackbone("tiny:llama")
        lr_scheduler = None

        @staticmethod
        def optimizer(trained):
            assert all(parameter.device.type == "meta" for _, parameter in trained)
            raise RuntimeError("fused=True requires CUDA tensors")

    check_optimizer(Trainer(max_steps=1, logger=False), Module, check_names(Module.backbone))


def test_muon_is_refused_where_matrices_come_in_pieces():
    class Module:
        backbone = LanguageBackbone("tiny:llama")
        lr_scheduler = None
        optimizer = MuonAdamW

    class Engine:
        max_steps, max_epochs = 1, None
        strategy = FSDP1Strategy()

    skeleton = check_names(Module.backbone)
    with pytest.raises(ValueError, match=r"Muon needs whole matrices.*FSDP1.*FSDP2Strategy"):
        check_optimizer(Engine, Module, skeleton)
    Engine.strategy = FSDP2Strategy()
    check_optimizer(Engine, Module, skeleton)


def test_lightnings_own_sharding_is_refused_and_ours_is_not():
    class Engine:
        strategy = FSDPStrategy()

    with pytest.raises(ValueError, match=r"FSDPStrategy would load the whole model.*FSDP2Strategy"):
        check_strategy(Engine, LanguageBackbone("tiny:llama"))
    Engine.strategy = FSDP2Strategy()
    check_strategy(Engine, LanguageBackbone("tiny:llama"))
    with pytest.raises(ValueError, match=r"FSDP2Strategy cannot shard quantised weights.*Use ddp"):
        check_strategy(Engine, LanguageBackbone("tiny:llama", quantization=Quantization(), adapter=LoRA()))


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true", "32-true", None, 32])
def test_what_a_cpu_can_do_is_let_through(precision):
    check_precision(precision, "cpu")


def test_a_gpu_without_bfloat16_is_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "Old GPU")
    with pytest.raises(ValueError, match=r"bf16-mixed: Old GPU does not compute in bfloat16\. Take 16-mixed"):
        check_precision("bf16-mixed", "auto")
    check_precision("16-mixed", "gpu")


def test_a_cpu_that_only_imitates_bfloat16_is_named(monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.warns(UserWarning, match="no bfloat16 instructions.*32-true"):
        check_precision("bf16-mixed", "cpu")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_precision("bf16-mixed", "cpu")
        check_precision("32-true", "cpu")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("check_val_every_n_epoch", 0),
        ("limit_train_batches", -1),
        ("limit_val_batches", float("nan")),
        ("limit_test_batches", float("inf")),
        ("gradient_clip_val", float("nan")),
        ("val_check_interval", float("nan")),
    ],
)
def test_trainer_settings_out_of_range_are_named(setting, value):
    with pytest.raises(ValueError, match=f"trainer.{setting} must be"):
        check_trainer_settings({setting: value})
