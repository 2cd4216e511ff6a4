"""The run's folder: its config, and no second run on top of a first one."""

from __future__ import annotations

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback

from smmd_lightning.callbacks.masking import masked


class RunFolder(SaveConfigCallback):
    """Writes `config.yaml` (fit) or `config.<stage>.yaml` into the run's folder.

    A training run that goes on from a checkpoint, and any evaluation, replaces its own file; a fresh training run
    refuses a folder that already holds one.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Writes the config before anything else happens.

        Raises:
            RuntimeError: A fresh run would write over an earlier one.
        """
        if stage != "fit":
            self.config_filename = f"config.{getattr(stage, 'value', stage)}.yaml"  # an enum since Lightning 2
            self.overwrite = True
        elif trainer.ckpt_path is not None:
            self.overwrite = True
        else:
            folder = Path(trainer.log_dir or trainer.default_root_dir)
            file = folder / self.config_filename
            # Asked once: another process would see the file that the first one writes a moment later.
            if trainer.strategy.broadcast(file.exists()) and not self.overwrite:
                last = folder / "checkpoints" / "last.ckpt"
                advice = (
                    f"To go on from it, use --resume auto or --ckpt_path {last}."
                    if last.exists()
                    else "It has no checkpoint; --resume auto starts it anew."
                )
                raise RuntimeError(
                    f"{file} exists: this folder already holds a run. {advice} To keep it, choose another folder with "
                    f"--run_dir, or move {folder} away."
                )
        self.config = masked(self.config)  # keys of loggers do not belong into a file that is passed around
        super().setup(trainer, pl_module, stage)
