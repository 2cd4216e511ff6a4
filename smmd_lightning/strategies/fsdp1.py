"""FSDP1: Lightning's strategy, with what it lacks for these models.

Unusual: it wraps the blocks that the loaded model names, sums gradients in float32 whatever computes, clips by norm,
and runs on CPUs too.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from lightning.pytorch.plugins.precision import FSDPPrecision, Precision
from lightning.pytorch.strategies.parallel import ParallelStrategy
from torch import nn
from torch.optim import Optimizer

from smmd_lightning.compat.of_lightning import WrappedFSDP
from smmd_lightning.strategies.base import ShardedStrategy

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone


class _FSDP1Precision(FSDPPrecision):
    def __init__(self, precision: Any, strategy: ParallelStrategy) -> None:
        super().__init__(precision)
        self.strategy = strategy

    def clip_grad_by_norm(self, optimizer: Optimizer, clip_val: int | float) -> None:
        model: Any = self.strategy.model
        if clip_val > 0:
            model.clip_grad_norm_(clip_val)

    def convert_input(self, data: Any) -> Any:
        return data  # FSDP casts what its forward gets; a batch also carries what is no tensor


class FSDP1Strategy(ShardedStrategy, WrappedFSDP):
    """FSDP1 (`FullyShardedDataParallel`), wrapped by the blocks that the model names.

    Prefer `FSDP2Strategy`: here frozen weights cost gradient memory, and each process reads the whole model before it
    is wrapped. Checkpoints are sharded folders.

    Args:
        sharding_strategy: `FULL_SHARD`, `SHARD_GRAD_OP`, `HYBRID_SHARD` (copies between nodes), `NO_SHARD`.
        cpu_offload: Whether shards, gradients and optimizer states live in main memory.
        timeout_minutes: How long a process waits for the others.
        process_group_backend: `nccl` or `gloo`. None: what fits the device.
    """

    def __init__(
        self,
        sharding_strategy: Literal["FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "NO_SHARD"] = "FULL_SHARD",
        cpu_offload: bool = False,
        timeout_minutes: float = 30.0,
        process_group_backend: str | None = None,
    ) -> None:
        super().__init__(
            sharding_strategy=sharding_strategy,
            cpu_offload=cpu_offload,
            state_dict_type="sharded",
            timeout=timedelta(minutes=timeout_minutes),
            process_group_backend=process_group_backend,
            use_orig_params=True,  # frozen and trained parameters may share a block
        )
        self.sharded_checkpoints = True

    def load_checkpoint(self, checkpoint_path: str | Path, weights_only: bool | None = None) -> dict[str, Any]:
        """Reads weights and optimizer states into place; evaluation takes a file too.

        Returns:
            The rest of the checkpoint.

        Raises:
            ValueError: Training would go on from a file, of which FSDP1 does not take over all of the optimizer.
            RuntimeError: The names do not fit the model; lists them.
        """
        if self.optimizers and not Path(self.broadcast(checkpoint_path)).is_dir():
            raise ValueError(
                f"{checkpoint_path} is a file; with FSDP1Strategy training goes on from sharded folders only. Use "
                "FSDP2Strategy, which takes both."
            )
        return super().load_checkpoint(checkpoint_path, weights_only)

    def load_backbone(self, backbone: Backbone) -> None:
        """Loads a backbone and takes its blocks as what is wrapped one by one."""
        from torch.distributed.fsdp.wrap import CustomPolicy

        backbone.load()
        blocks = set(backbone.blocks)
        self.kwargs["auto_wrap_policy"] = CustomPolicy(lambda module: module in blocks)

    def wrap(self, model: nn.Module) -> nn.Module:
        """Wraps the model; Lightning's own way passes a device number, which CPUs lack."""
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(
            model,
            cpu_offload=self.cpu_offload,
            mixed_precision=self.mixed_precision_config,
            sharding_strategy=self.sharding_strategy,
            device_id=self.root_device,
            **self.kwargs,
        )

    @property
    def mixed_precision_config(self) -> Any:
        """The trainer's precision, but with gradients summed, and buffers kept, in float32."""
        from torch.distributed.fsdp import MixedPrecision

        plugin = self.precision_plugin
        kind = plugin.mixed_precision_config.param_dtype
        return MixedPrecision(param_dtype=kind, reduce_dtype=torch.float32, buffer_dtype=torch.float32)

    @property
    def precision_plugin(self) -> FSDPPrecision:
        """Arithmetic of the chosen precision, and clipping by norm, which Lightning's own plugin refuses."""
        plugin = self.chosen_precision
        return plugin if isinstance(plugin, FSDPPrecision) else _FSDP1Precision("32-true", self)

    @precision_plugin.setter
    def precision_plugin(self, plugin: Precision | None) -> None:
        self.chosen_precision = None if plugin is None else _FSDP1Precision(plugin.precision, self)
