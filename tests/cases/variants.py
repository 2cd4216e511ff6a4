"""Twenty kinds of short runs that are stopped and go on, and whether two of them ended alike."""

import csv
from pathlib import Path

import sums
import torch
import yaml
from ends import flat
from lightning.pytorch.callbacks import Callback

from smmd_lightning.report.run import read_run

DATA, TRAINER, MODEL = "data.init_args", "trainer", "model"
PLATEAU = {
    "class_path": "lightning.pytorch.cli.ReduceLROnPlateau",
    "init_args": {"monitor": "val/ce", "patience": 0, "factor": 0.5, "threshold": 0.5},
}
CSV = {
    "class_path": "CSVLogger",
    "init_args": {"save_dir": "RUN", "name": "", "version": "", "flush_logs_every_n_steps": 1},
}


def callback(path, **settings):
    return {"class_path": path, "init_args": settings}


STOPPING = callback("lightning.pytorch.callbacks.EarlyStopping", monitor="val/ce", patience=1, min_delta=10.0)
PATIENT = callback("lightning.pytorch.callbacks.EarlyStopping", monitor="val/ce", patience=3, min_delta=10.0)
EVERY_2 = {f"{TRAINER}.val_check_interval": 2}
FULL = {f"{MODEL}.backbone.init_args": {"path": "tiny:llama"}, f"{MODEL}.save_trained_only": False}

VARIANTS = {
    "plain": {},
    "workers": {f"{DATA}.num_workers": 2},
    "full": FULL,
    "no accumulation": {f"{TRAINER}.accumulate_grad_batches": 1},
    "accumulation 3": {f"{TRAINER}.accumulate_grad_batches": 3, f"{TRAINER}.val_check_interval": 2},
    "by steps": {f"{TRAINER}.max_epochs": -1, f"{TRAINER}.max_steps": 5},
    "packed": {f"{DATA}.pack": True, f"{DATA}.max_length": 200},
    "grouped": {f"{DATA}.group_by_length": True},
    "bad samples": {"data.class_path": "variants.SomeBad", f"{DATA}.max_bad_share": 0.5},
    "muon": FULL | {f"{MODEL}.optimizer": callback("smmd_lightning.optimizers.MuonAdamW", lr=1e-3)},
    "bf16": {f"{TRAINER}.precision": "bf16-mixed", f"{MODEL}.backbone.init_args.dtype": "bfloat16"},
    "bf16 full": FULL
    | {
        f"{TRAINER}.precision": "bf16-mixed",
        f"{MODEL}.backbone.init_args": {"path": "tiny:llama", "dtype": "bfloat16"},
    },
    "ema": {"callbacks": [callback("lightning.pytorch.callbacks.EMAWeightAveraging", decay=0.5)]},
    "ema full": FULL | {"callbacks": [callback("lightning.pytorch.callbacks.EMAWeightAveraging", decay=0.5)]},
    "plateau": EVERY_2 | {f"{MODEL}.lr_scheduler": PLATEAU},
    "early stopping": EVERY_2 | {"callbacks": [STOPPING], f"{TRAINER}.max_epochs": 4},
    "plateau and stopping": EVERY_2
    | {f"{MODEL}.lr_scheduler": PLATEAU, "callbacks": [PATIENT], f"{TRAINER}.max_epochs": 4},
    "csv": {f"{TRAINER}.logger": CSV},
    "wandb": {f"{TRAINER}.logger": callback("WandbLogger", save_dir="RUN", offline=True)},
    "weight schedule": {f"{MODEL}.weight_schedule": {"warmup_steps": 2, "decay": "linear"}},
    "mixed": {
        "data": callback(
            "datamodules.MixedDataModule",
            parts=[
                {"samples": {"class_path": "datamodules.DrawnArithmetic"}, "weight": 2.0},
                {"samples": {"class_path": "datamodules.DrawnWordProblems"}},
            ],
            train_size=10,
            limit=10,
            batch_size=2,
            num_workers=0,
            generation_limit=2,
        )
    },
    "few checkpoints": {"checkpoint.every_n_train_steps": None},
}
"""Settings of each, over those of `sums.command`, by dotted name."""


class SomeBad(sums.SumsData):
    """Of every seven samples one cannot be used."""

    def source(self, split):
        return SomeBadSums(self.sizes[split])


class SomeBadSums(sums.Sums):
    def example(self, key):
        from smmd_lightning.types import BadSample

        if key.index % 7 == 3:
            raise BadSample(f"sample {key.index} is bad")
        return super().example(key)


class Learning(Callback):
    """Notes the learning rate of each optimizer step."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        with open(f"{trainer.default_root_dir}/rates.txt", "a") as file:
            file.write(f"{trainer.global_step} {optimizer.param_groups[0]['lr']!r}\n")


def command(folder, name):
    """The command of a variant's run in `folder`."""
    words = sums.command(folder, 1, 1, workers=0)
    file = folder / "config.yaml"
    config = yaml.safe_load(file.read_text())
    config["trainer"] |= {"log_every_n_steps": 1}
    for path, value in VARIANTS[name].items():
        if path == "callbacks":
            config["trainer"]["callbacks"] += value
            continue
        *parents, last = path.split(".")
        place = config
        for parent in parents:
            place = place[parent]
        place[last] = value
    config["trainer"]["callbacks"].append({"class_path": "variants.Learning"})
    file.write_text(yaml.safe_dump(config).replace("save_dir: RUN", f"save_dir: {folder / 'run'}"))
    return words


def assert_same(found: Path, expected: Path) -> None:
    """Compares checkpoints bit by bit, samples and loss of every micro-batch, rates, and what was logged."""
    for file in ("last.ckpt", "best.ckpt"):
        first, second = (flat(_state(folder / "run" / "checkpoints" / file)) for folder in (found, expected))
        assert first.keys() == second.keys(), (file, first.keys() ^ second.keys())
        for name, value in second.items():
            same = torch.equal(first[name], value) if torch.is_tensor(value) else first[name] == value
            assert same, (file, name, first[name], value)
    for name in ("seen.0.txt", "rates.txt"):
        first, second = (_by_step(folder / "run" / name) for folder in (found, expected))
        assert first == second, name
    first, second = _curves(found / "run"), _curves(expected / "run")
    assert first == second, [name for name in {*first, *second} if first.get(name) != second.get(name)]


def _state(file):
    checkpoint = torch.load(file, weights_only=True)
    scores = [state["best_model_score"] for key, state in checkpoint["callbacks"].items() if "BestAnd" in key]
    parts = ("state_dict", "current_model_state", "averaging_state", "optimizer_states", "lr_schedulers", "global_step")
    stopped = [state for key, state in checkpoint["callbacks"].items() if key.startswith("EarlyStopping")]
    return {part: checkpoint[part] for part in parts if part in checkpoint} | {"scores": scores, "stopped": stopped}


def _by_step(file):
    """The lines of a file, repeated ones once, in order of their first appearance."""
    return sorted(set(file.read_text().splitlines()))


def _curves(run):
    """All logged values but those of time, by name, the last one of each step."""
    if (run / "metrics.csv").exists():
        rows = list(csv.DictReader((run / "metrics.csv").open()))
        found = {}
        for row in rows:
            for name, value in row.items():
                if value and not name.startswith(("speed/", "step")):
                    found.setdefault(name, {})[float(row["step"])] = value
        return found
    if not list(run.glob("events.out.tfevents.*")):  # W&B's own format
        return {}
    curves = {name: sorted(dict(values).items()) for name, values in read_run(run).curves.items()}
    # As text, in which NaN, a mean over no answers, equals itself.
    return {name: repr(values) for name, values in curves.items() if not name.startswith("speed/")}
