"""A small task for tests of many processes: sums, with answers from one token to a hundred."""

import functools
import os
import signal

import torch
import yaml
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback

from datamodules.base import NumericDataModule
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
from smmd_lightning.types import NumericExample


class Sums:
    """Sample `index` asks for a sum; every fifth answer is long."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def example(self, key):
        first, second = key.index % 7, (3 * key.index + key.epoch) % 10
        answer = f"{first + second}"
        if key.index % 5 == 0:
            answer = f"{first} + {second} = " * (1 + key.index % 4) + answer
        meta = {"task": "math"}
        return NumericExample(f"sum-{key.epoch}-{key.index}", f"{first}+{second}?", answer, meta=meta)


class SumsData(NumericDataModule):
    def __init__(self, processor="tiny:llama", train_size=16, eval_size=5, **common):
        super().__init__(processor, **common)
        self.sizes = {"train": train_size, "val": eval_size, "test": eval_size}

    def source(self, split):
        return Sums(self.sizes[split])


QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "use_distributed_sampler": False,
    "max_epochs": 1,
    "limit_val_batches": 0,
}


def module(
    loss=True, weight=0.5, *, lr=1e-3, optimizer=torch.optim.AdamW, path="tiny:llama", backbone=None, **settings
):
    torch.manual_seed(0)
    kind = LanguageBackbone if path in ("tiny:llama", "tiny:qwen2") else VisionLanguageBackbone
    return SMMDModule(
        kind(path, **(backbone or {})),
        SMMDLoss() if loss else None,
        weight,
        functools.partial(optimizer, lr=lr),
        max_new_tokens=settings.pop("max_new_tokens", 4),
        **settings,
    )


def trainer(**settings):
    return Trainer(**QUIET | settings)


def whole(value):
    """A parameter, gradient or state that may be spread over processes, in one piece."""
    value = value.detach()
    return value.full_tensor().clone() if hasattr(value, "full_tensor") else value.clone()


class Gradients(Callback):
    """Keeps the gradients of every optimizer step, before they are used."""

    def __init__(self):
        self.steps = []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        named = pl_module.named_parameters()
        self.steps.append({name: whole(p.grad) for name, p in named if p.grad is not None})


def assert_near(found, expected, relative=1e-5):
    """Compares dictionaries of tensors by norm, each relative to the largest norm of all."""
    assert found.keys() == expected.keys(), sorted(found.keys() ^ expected.keys())[:5]
    scale = max(float(value.norm()) for value in expected.values())
    assert scale > 0
    for name, value in expected.items():
        difference = float((found[name] - value).norm())
        assert difference <= relative * max(float(value.norm()), 1e-3 * scale), (name, difference, float(value.norm()))


LORA = {"adapter": LoRA(rank=2, dropout=0.1)}


class Picture(Sums):
    """Every second half of eight samples comes with a picture."""

    def example(self, key):
        from PIL import Image

        made = super().example(key)
        if key.index % 16 < 8:
            return made
        picture = Image.new("RGB", (32, 32), (10 * key.index % 256, 90, 30))
        return NumericExample(made.id, made.prompt, made.answer, (picture,), made.meta)


class Mixed(SumsData):
    """Of 16 samples in natural order, the first process of two gets text alone, the second one pictures."""

    def source(self, split):
        return Picture(self.sizes[split])

    def _loader(self, split, **settings):
        loader = super()._loader(split, **settings)
        loader._sampler.shuffle = False
        return loader


def scenario(function):
    """Marks a function as something for two processes to do together."""
    function.is_scenario = True
    return function


class Strike(Callback):
    """Sends this process a signal before the micro-batch that $STRIKE names: "7:KILL:1" strikes process 1."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        place, name, rank = os.environ.get("STRIKE", "-1:KILL:0").split(":")
        if (trainer.fit_loop.epoch_loop.total_batch_idx, trainer.global_rank) == (int(place), int(rank)):
            os.kill(os.getpid(), getattr(signal, f"SIG{name}"))


class Seen(Callback):
    """Writes what each micro-batch was and cost into `seen.RANK.txt`, behind what is there."""

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        ids = ",".join(example.id for example in batch.examples)
        with open(f"{trainer.default_root_dir}/seen.{trainer.global_rank}.txt", "a") as file:
            file.write(f"{trainer.global_step} {float(outputs['loss'])!r} {ids}\n")


def command(folder, devices, nodes, workers):
    """A command: two epochs of five micro-batches, accumulation 2, dropout, a schedule, validation inside epochs."""
    config = {
        "seed_everything": 3,
        "run_dir": str(folder / "run"),
        "resume": "auto",
        "model": {
            "backbone": {
                "class_path": "smmd_lightning.backbones.LanguageBackbone",
                "init_args": {"path": "tiny:llama", "adapter": {"rank": 2, "dropout": 0.1}},
            },
            "numeric_loss": {"class_path": "smmd_lightning.losses.SMMDLoss"},
            "optimizer": {"class_path": "torch.optim.AdamW", "init_args": {"lr": 1.0e-3}},
            "lr_scheduler": {"class_path": "smmd_lightning.schedules.WarmupDecay", "init_args": {"warmup_steps": 2}},
            "save_trained_only": True,
        },
        "data": {
            "class_path": "sums.SumsData",
            "init_args": {
                "train_size": 19 if devices * nodes == 2 else 10,
                "eval_size": 3,
                "batch_size": 2,
                "num_workers": workers,
                "generation_limit": 2,
            },
        },
        "trainer": {
            "accelerator": "cpu",
            "devices": devices,
            "num_nodes": nodes,
            "strategy": "ddp" if devices * nodes == 2 else "auto",
            "max_epochs": 2,
            "accumulate_grad_batches": 2,
            "val_check_interval": 3,
            "num_sanity_val_steps": 0,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "callbacks": [{"class_path": "sums.Strike"}, {"class_path": "sums.Seen"}],
        },
        "checkpoint": {"monitor": "val/ce", "mode": "min", "every_n_train_steps": 1},
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return ["train_sums.py", "fit", "--config", str(folder / "config.yaml")]
