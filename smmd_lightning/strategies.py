"""Sharding over processes that plain Lightning leaves to the user.

Unusual: what is sharded one by one are the blocks that the model itself names (`_no_split_modules`: decoder layers,
vision blocks); everything else goes with the whole. A process maps the model's files in their own type, keeps its
shards, and only then converts these, so that none ever holds the whole model in float32. Numeric tables and rotary
tables are buffers, which are neither sharded nor cast; gradients are summed in float32.

One real example: `--trainer.strategy smmd_lightning.strategies.FSDP2Strategy --trainer.devices 8`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TYPE_CHECKING

import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from lightning.pytorch.plugins.precision import FSDPPrecision
from lightning.pytorch.strategies import FSDPStrategy, ModelParallelStrategy
from lightning.pytorch.strategies.parallel import ParallelStrategy
from torch import nn
from torch.optim import Optimizer

from smmd_lightning import sharded
from smmd_lightning.checkpointing import META

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

Precision = Literal["float32", "bfloat16", "float16"]


class _ShardedStrategy(ParallelStrategy):
    """What both strategies share: reading the model's files, and checkpoints."""

    sharded_checkpoints: bool

    def load_backbone(self, backbone: Backbone) -> None:
        """Loads a backbone, this process keeping no more than it needs."""
        raise NotImplementedError

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """Returns this process's shards; of one-file checkpoints, everything on process 0."""
        assert self.model is not None
        return sharded.weights(self.model, whole=not self.sharded_checkpoints)

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Returns this process's shards; of one-file checkpoints, everything on process 0."""
        assert self.model is not None
        plain = optimizer._optimizer if isinstance(optimizer, LightningOptimizer) else optimizer
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
            rest: dict[str, Any] = torch.load(path / META, map_location="cpu", weights_only=True)
        else:
            rest = sharded.read_file(path)
            rest.pop(sharded.STATE)
            rest.pop("optimizer_states", None)
        return rest

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        """Does nothing: `load_checkpoint` has done it."""

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Does nothing: `load_checkpoint` has done it."""


class FSDP2Strategy(_ShardedStrategy, ModelParallelStrategy):
    """FSDP2 (`torch.distributed.fsdp.fully_shard`) over all processes; runs on GPUs, and on CPUs with gloo.

    Keep the trainer's `precision` at `32-true`: `compute_dtype` is what computes, and shards keep the type that the
    backbone asks for.

    Args:
        compute_dtype: Type of weights and activations in forward and backward; the sharded weights keep their own.
        reshard_after_forward: Whether gathered weights are dropped between forward and backward (less memory, one
            more gather).
        cpu_offload: Whether shards, gradients and optimizer states live in main memory.
        save_distributed_checkpoint: True writes a folder with one part a process, False one ordinary file.
        timeout_minutes: How long a process waits for the others.
        process_group_backend: `nccl` or `gloo`. None: what fits the device.
    """

    def __init__(
        self,
        compute_dtype: Precision = "float32",
        reshard_after_forward: bool = True,
        cpu_offload: bool = False,
        save_distributed_checkpoint: bool = True,
        timeout_minutes: float = 30.0,
        process_group_backend: str | None = None,
    ) -> None:
        if cpu_offload and process_group_backend is None:
            process_group_backend = "cpu:gloo,cuda:nccl"  # the norm for clipping is summed where the gradients are
        super().__init__(
            data_parallel_size=1,
            tensor_parallel_size=1,
            save_distributed_checkpoint=save_distributed_checkpoint,
            process_group_backend=process_group_backend,
            timeout=timedelta(minutes=timeout_minutes),
        )
        self.compute_dtype: Precision = compute_dtype
        self.reshard_after_forward = reshard_after_forward
        self.cpu_offload = cpu_offload
        self.sharded_checkpoints = save_distributed_checkpoint

    def setup_environment(self) -> None:
        """Starts the process group, all processes in one data-parallel group."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()

    def load_backbone(self, backbone: Backbone) -> None:
        """Loads and shards a backbone; shards are converted to the type it asks for.

        Files in another type than float32 are mapped as they are, one copy a host whatever the number of processes, and
        become float32 when each process has its shards.
        """
        wanted = backbone.dtype
        convert = wanted == "float32" and not backbone.from_scratch
        if convert:
            backbone.dtype = "auto"
        try:
            backbone.load()
        finally:
            backbone.dtype = wanted
        self.shard(backbone, backbone.blocks)
        if convert:
            backbone.float()

    def shard(self, backbone: nn.Module, blocks: list[nn.Module]) -> None:
        """Shards a loaded backbone in place.

        Args:
            backbone: The whole; its `forward` and `generate` gather what is not in a block.
            blocks: What is gathered one at a time.
        """
        from torch.distributed.fsdp import (
            CPUOffloadPolicy,
            MixedPrecisionPolicy,
            fully_shard,
            register_fsdp_forward_method,
        )

        options: dict[str, Any] = {
            "mesh": self.device_mesh["data_parallel"],
            "reshard_after_forward": self.reshard_after_forward,
            "mp_policy": MixedPrecisionPolicy(
                param_dtype=getattr(torch, self.compute_dtype), reduce_dtype=torch.float32, cast_forward_inputs=False
            ),
        }
        if self.cpu_offload:
            options["offload_policy"] = CPUOffloadPolicy(pin_memory=self.root_device.type == "cuda")
        for block in blocks:
            fully_shard(block, **options)
        fully_shard(backbone, **options)
        register_fsdp_forward_method(backbone, "generate")
        # The losses that a backbone returns may be views of each other; nothing here changes them in place.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")

    def model_to_device(self) -> None:
        """Moves what is not sharded; with `cpu_offload` the shards stay where they are."""
        from torch.distributed.fsdp import FSDPModule

        assert self.model is not None
        for child in self.model.children():
            if not (self.cpu_offload and isinstance(child, FSDPModule)):
                child.to(self.root_device)


class _FSDP1Precision(FSDPPrecision):
    def __init__(self, precision: Any, strategy: ParallelStrategy) -> None:
        super().__init__(precision)
        self.strategy = strategy

    def clip_grad_by_norm(self, optimizer: Optimizer, clip_val: int | float) -> None:  # type: ignore[override]
        model: Any = self.strategy.model
        if clip_val > 0:
            model.clip_grad_norm_(clip_val)

    def convert_input(self, data: Any) -> Any:
        return data  # FSDP casts what its forward gets; a batch also carries what is no tensor


class FSDP1Strategy(_ShardedStrategy, FSDPStrategy):
    """FSDP1 (`FullyShardedDataParallel`), wrapped by the blocks that the model names. Prefer `FSDP2Strategy`:
    here frozen weights cost gradient memory, and each process reads the whole model before it is wrapped.

    Checkpoints are sharded folders.

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

    def _setup_model(self, model: nn.Module) -> nn.Module:
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
        plugin = self._precision_plugin
        return plugin if isinstance(plugin, FSDPPrecision) else _FSDP1Precision("32-true", self)

    @precision_plugin.setter
    def precision_plugin(self, plugin: FSDPPrecision | None) -> None:
        self._precision_plugin = None if plugin is None else _FSDP1Precision(plugin.precision, self)


__all__ = ["FSDP1Strategy", "FSDP2Strategy"]
