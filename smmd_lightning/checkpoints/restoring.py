"""What of a module goes into its checkpoints, and how it comes back: names that must fit, settings that may be trusted.

Unusual: a checkpoint may hold the trained weights only. What is missing must then be frozen weights, by name, and
nothing is loaded before all names and shapes have been compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.trainer.states import TrainerFn

from smmd_lightning.checkpoints.atomic import temporary_folder
from smmd_lightning.checkpoints.names import compare_names, compare_shapes, trained_names
from smmd_lightning.checkpoints.resume import settle_counters
from smmd_lightning.checkpoints.sharded import consolidate, read_file
from smmd_lightning.checkpoints.trust import refuse_url, trusted
from smmd_lightning.compat.of_lightning import trainer_of

WEIGHTS = {"state_dict", "current_model_state"}
"""Parts of a checkpoint that hold weights by name; the second beside averaged ones (Lightning's WeightAveraging)."""


class RestorableModule(LightningModule):
    """A LightningModule whose checkpoints hold plain settings and, if wanted, the trained weights only.

    Args:
        save_trained_only: Whether checkpoints leave out the weights that are frozen.

    Attributes:
        asking: How training put its questions, for exported folders; None before training.
        measured: What `loss_weight: auto` goes by, with a `state_dict` of plain numbers; None where it is a number.
    """

    def __init__(self, save_trained_only: bool = False) -> None:
        super().__init__()
        self.save_trained_only = save_trained_only
        self.asking: dict[str, Any] | None = None
        self.measured: Any = None
        self._without_numbers = 0
        self._optimizer_before: Any = None

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Leaves frozen weights out where `save_trained_only` says so, and makes resuming exact."""
        if self.save_trained_only:
            trained = trained_names(self)
            for part in WEIGHTS & checkpoint.keys():
                checkpoint[part] = {name: value for name, value in checkpoint[part].items() if name in trained}
        checkpoint["steps_without_numbers"] = self._without_numbers
        if self.measured is not None:
            checkpoint["measured_weight"] = self.measured.state_dict()
        settle_counters(self.trainer, checkpoint)
        ask = getattr(self.trainer.datamodule, "asking", None)  # type: ignore[attr-defined]
        checkpoint["asking"] = self.asking if ask is None else ask()

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]
        cls,
        checkpoint_path: str | Path,
        map_location: Any = None,
        *,
        allow: Iterable[str] = (),
        trust_remote_code: bool = False,
        strict: bool | None = None,
        weights_only: bool | None = None,
        **settings: Any,
    ) -> Self:
        """Builds the module that a checkpoint describes, with its weights.

        Args:
            checkpoint_path: A file on this machine, or the folder of a sharded checkpoint.
            map_location: As in `torch.load`.
            allow: Packages whose classes the checkpoint may name, beside this project's and `torch.optim`.
            trust_remote_code: Run code that comes with the model, where the checkpoint asks for it.
            strict: Whether names must fit, see `load_state_dict`.
            weights_only: Not used; no code in a checkpoint is ever run.
            **settings: Constructor arguments that replace the checkpoint's.

        Raises:
            ValueError: The file is damaged, holds code, names a class that is not allowed, or is a URL.
        """
        refuse_url(checkpoint_path)
        path = Path(checkpoint_path)
        if not path.exists():
            raise ValueError(f"There is no checkpoint at {path}.")
        if path.is_dir():
            with temporary_folder(path.with_name(f"{path.name}.whole")) as folder:
                whole = folder / "whole.ckpt"
                torch.save(consolidate(path, weights_only=True), whole)
                return cls.load_from_checkpoint(
                    whole, map_location, allow=allow, trust_remote_code=trust_remote_code, strict=strict, **settings
                )
        found = read_file(path).get(cls.CHECKPOINT_HYPER_PARAMS_KEY, {})
        safe = trusted(found, checkpoint_path, allow, trust_remote_code)
        return super().load_from_checkpoint(
            checkpoint_path, map_location, strict=strict, weights_only=True, **(safe | settings)
        )

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads weights; names that are missing must all be frozen ones, where checkpoints hold the trained only.

        Raises:
            RuntimeError: Lists the names that are missing, those that the model does not know, or those of another
                shape; nothing has been loaded then.
        """
        if strict:
            own = self.state_dict()
            self.check_names(set(state_dict), set(own))
            compare_shapes(state_dict, own)
        return super().load_state_dict(state_dict, strict=False, assign=assign)

    def check_names(self, found: set[str], own: set[str]) -> None:
        """Compares the names in a checkpoint with the model's; what is missing may only be frozen weights.

        Args:
            found: Names in the checkpoint.
            own: Names of the model's weights, as a checkpoint of the whole has them.

        Raises:
            RuntimeError: Lists the names that are missing and those that the model does not know.
        """
        compare_names(found, own, optional=self._frozen_names(own))

    def _frozen_names(self, own: set[str]) -> set[str]:
        """Names that this module's checkpoints leave out."""
        return own - trained_names(self) if self.save_trained_only else set()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes over the settings that the checkpoint was written with, if this object has none of its own."""
        self._without_numbers = checkpoint.get("steps_without_numbers", 0)
        if self.measured is not None and "measured_weight" in checkpoint:
            self.measured.load_state_dict(checkpoint["measured_weight"])
        self.asking = checkpoint.get("asking")
        settings = checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {})
        trainer = trainer_of(self)
        if trainer is not None and trainer.state.fn == TrainerFn.FITTING:
            self._optimizer_before = settings.get("optimizer")
            if "averaging_state" in checkpoint:  # the callback loads all names, frozen ones too
                own = self.state_dict()
                self.check_names(set(checkpoint["state_dict"]), set(own))
                checkpoint["state_dict"] = {**own, **checkpoint["state_dict"]}
        if not self.hparams:
            self.save_hyperparameters(settings, logger=False)
