"""What strategies with sharded weights share: how a backbone is read, and checkpoints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.pytorch.core.optimizer import LightningOptimizer
from lightning.pytorch.strategies.parallel import ParallelStrategy
from torch.optim import Optimizer

from smmd_lightning.checkpoints import sharded
from smmd_lightning.checkpoints.sharded import META

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone


class ShardedStrategy(ParallelStrategy):
    """What both strategies share: reading the model's files, and checkpoints."""

    sharded_checkpoints: bool

    @abstractmethod
    def load_backbone(self, backbone: Backbone) -> None:
        """Loads a backbone, this process keeping no more than it needs."""

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """Returns this process's shards; of one-file checkpoints, everything on process 0."""
        assert self.model is not None
        return sharded.weights(self.model, whole=not self.sharded_checkpoints)

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Returns this process's shards; of one-file checkpoints, everything on process 0."""
        assert self.model is not None
        plain = optimizer.optimizer if isinstance(optimizer, LightningOptimizer) else optimizer
        return sharded.optimizer_state(self.model, plain, whole=not self.sharded_checkpoints)

    def save_checkpoint(self, checkpoint: dict[str, Any], filepath: str | Path, storage_options: Any = None) -> None:
        """Writes a folder with one part a process, or a file, whole or not at all.

        Raises:
            RuntimeError: It could not be written.
        """
        path = Path(self.broadcast(filepath))
        if self.sharded_checkpoints:
            sharded.write_folder(checkpoint, path)
        elif self.is_global_zero:
            self.checkpoint_io.save_checkpoint(checkpoint, path, storage_options=storage_options)

    def load_checkpoint(self, checkpoint_path: str | Path, weights_only: bool | None = None) -> dict[str, Any]:
        """Reads weights and optimizer states into place; written by any strategy and any number of processes.

        Returns:
            The rest of the checkpoint.

        Raises:
            RuntimeError: The names do not fit the model; lists them.
        """
        path = Path(self.broadcast(checkpoint_path))
        assert self.model is not None
        assert self.lightning_module is not None
        module: Any = self.lightning_module
        module.check_names(sharded.saved_names(path), set(sharded.weights(self.model, whole=False)))
        sharded.load_weights(self.model, path)
        for number, optimizer in enumerate(self.optimizers):
            sharded.load_optimizer(self.model, optimizer, path, number)
        if path.is_dir():
            rest = sharded.read_file(path / META)
        else:
            rest = sharded.read_file(path)
            rest.pop(sharded.STATE)
            rest.pop("optimizer_states", None)
        return rest

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        """Does nothing: `load_checkpoint` has done it."""

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Does nothing: `load_checkpoint` has done it."""
