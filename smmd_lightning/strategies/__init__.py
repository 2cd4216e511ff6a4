"""How weights, gradients and optimizer states are spread over processes, beyond Lightning's own DDP."""

from smmd_lightning.strategies.base import ShardedStrategy
from smmd_lightning.strategies.fsdp1 import FSDP1Strategy
from smmd_lightning.strategies.fsdp2 import FSDP2Strategy

__all__ = ["FSDP1Strategy", "FSDP2Strategy", "ShardedStrategy"]
