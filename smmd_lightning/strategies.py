"""Sharding over processes that plain Lightning leaves to the user.

Unusual: each process builds the model, then keeps its share only; what is sharded one by one are the blocks that the
model itself names (`_no_split_modules`: decoder layers, vision blocks), everything else goes with the whole backbone.
Numeric tables and rotary buffers are buffers, which no sharding touches; gradients are always summed in float32.

One real example: `--trainer.strategy smmd_lightning.strategies.FSDP2Strategy --trainer.devices 8`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import nn

Precision = Literal["float32", "bfloat16", "float16"]


class FSDP2Strategy(ModelParallelStrategy):
    """FSDP2 (`torch.distributed.fsdp.fully_shard`) over all processes; runs on GPUs, and on CPUs with gloo.

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

    def setup_environment(self) -> None:
        """Starts the process group, all processes in one data-parallel group."""
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()

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
            options["offload_policy"] = CPUOffloadPolicy()
        for block in blocks:
            fully_shard(block, **options)
        fully_shard(backbone, **options)
        register_fsdp_forward_method(backbone, "generate")
