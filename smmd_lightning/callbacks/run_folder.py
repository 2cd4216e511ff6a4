"""The run's folder: its config, and no second run on top of a first one."""

from __future__ import annotations

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback

from smmd_lightning.callbacks.csv_log import drop_rows_after
from smmd_lightning.checkpoints.atomic import write_text
from smmd_lightning.masking import masked


class RunFolder(SaveConfigCallback):
    """Writes `config.yaml` (fit) or `config.<stage>.yaml` into the run's folder, whatever the loggers.

    A training run that goes on from a checkpoint, and any evaluation, replaces its own file; a fresh training run
    refuses a folder that already holds one. The file is written when the stage begins, so a run that is refused, by
    another model's checkpoint say, leaves the earlier one. It holds no `ckpt_path`: given to a new run, it starts one.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuses a folder that holds another run.

        Raises:
            RuntimeError: A fresh run would write over an earlier one.
        """
        if stage != "fit":
            self.config_filename = f"config.{getattr(stage, 'value', stage)}.yaml"  # an enum since Lightning 2
            return
        if self.overwrite or self.config.get("ckpt_path") is not None:  # the trainer itself knows of it only later
            return
        folder = Path(trainer.default_root_dir)
        file = folder / self.config_filename
        last = folder / "checkpoints" / "last.ckpt"
        # Asked once: another process would see the file that the first one writes a moment later.
        if trainer.strategy.broadcast(file.exists() or last.exists()):
            advice = (
                f"To go on from it, use --resume auto or --ckpt_path {last}."
                if last.exists()
                else "It has no checkpoint; --resume auto starts it from the beginning."
            )
            raise RuntimeError(
                f"{file if file.exists() else last} exists: this folder already holds a run. {advice} To keep it, "
                f"choose another folder with --run_dir, or move {folder} away."
            )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the config: the checkpoint, if there is one, has been loaded."""
        if trainer.is_global_zero and trainer.ckpt_path is not None:
            drop_rows_after(trainer, trainer.global_step)
        self.save_config(trainer, pl_module, trainer.state.fn or "fit")

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the config of an evaluation."""
        if trainer.state.fn == "validate":
            self.save_config(trainer, pl_module, trainer.state.fn or "fit")

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the config of a test."""
        self.save_config(trainer, pl_module, trainer.state.fn or "fit")

    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Writes the config of a prediction."""
        self.save_config(trainer, pl_module, trainer.state.fn or "fit")

    def save_config(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Writes the config once, on process 0."""
        if not trainer.is_global_zero or self.already_saved:
            return
        self.already_saved = True
        config = masked(self.config)  # keys of loggers do not belong into a file that is passed around
        if self.config_filename == "config.yaml" and "ckpt_path" in config:
            config = config.clone()
            config["ckpt_path"] = None
        text = self.parser.dump(config, skip_none=False)
        write_text(Path(trainer.default_root_dir) / self.config_filename, text)
