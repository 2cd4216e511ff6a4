"""FSDP2: weights, gradients and optimizer states spread over processes.

Unusual: what is sharded one by one are the blocks that the model itself names (`_no_split_modules`: decoder layers,
vision blocks); everything else goes with the whole. A process maps the model's files in their own type, keeps its
shards, and only then converts these, so that none ever holds the whole model in float32. Numeric tables and rotary
tables are buffers, which are neither sharded nor cast; gradients are summed in float32.

One real example: `--trainer.strategy smmd_lightning.strategies.FSDP2Strategy --trainer.devices 8`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from smmd_lightning.compat.messages import hide_warning_of_views
from smmd_lightning.compat.of_lightning import SpreadModel
from smmd_lightning.strategies.base import ShardedStrategy

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

Precision = Literal["float32", "bfloat16", "float16"]


class FSDP2Strategy(ShardedStrategy, SpreadModel):
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
        process_group_backend: `nccl` or `gloo`. None: what fits the device; with `cpu_offload` on GPUs, both.
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
        self.spread_data(self.num_nodes * self.num_processes)
        if self.cpu_offload and self.process_group_backend is None and self.root_device.type == "cuda":
            self.use_backend("cpu:gloo,cuda:nccl")  # clipping sums the norm where the gradients are
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
        hide_warning_of_views()

    def model_to_device(self) -> None:
        """Moves what is not sharded; with `cpu_offload` the shards stay where they are."""
        from torch.distributed.fsdp import FSDPModule

        assert self.model is not None
        for child in self.model.children():
            if not (self.cpu_offload and isinstance(child, FSDPModule)):
                child.to(self.root_device)
