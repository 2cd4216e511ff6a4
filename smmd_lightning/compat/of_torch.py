"""Private names of torch (2.9 to 2.14)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import distributed_c10d
from torch.optim import Muon
from torch.optim.lr_scheduler import LambdaLR


def largest_of_each(tensors: list[Tensor]) -> list[Tensor]:
    """Returns the largest absolute value of each tensor, in one kernel for all of them.

    `clip_grad_norm_` uses the same function; publicly it takes a launch per tensor, hundreds per step.
    """
    return list(torch._foreach_norm(tensors, math.inf))


def cpu_has_bfloat16() -> bool:
    """Whether this CPU has instructions for bfloat16; `torch.cpu` does not tell."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def shared_store() -> dist.Store | None:
    """Returns what the processes of a run share: names and values, at the first one; None where there is one process.

    Publicly there are collectives alone, which all processes must enter together.
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return None
    return distributed_c10d._get_default_store()


class KeepsBuffersExact(nn.Module):
    """A module whose buffers follow the device, but never a cast (`bf16-true`) or an emptying (`to_empty`).

    Every `.to`, `.half`, `.cuda` and `to_empty` of a module goes through `_apply`; there is no public hook.
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        exact = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, table in exact.items():
            moved = self._buffers[name]
            if table is not None and moved is not None:
                self._buffers[name] = table if moved.is_meta else table.to(moved.device)
        return self


class MuonGroups(Muon):
    """`torch.optim.Muon` with its momentum open to a step of one's own."""

    def gather(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Returns a group's parameters that have gradients, the gradients, and the momentum buffers, made if new.

        The state has torch's names and forms, so that either step can go on from the other's checkpoint.
        """
        parameters: list[Tensor] = []
        gradients: list[Tensor] = []
        buffers: list[Tensor] = []
        self._init_group(group, parameters, gradients, buffers)
        return parameters, gradients, buffers


class SteppedSchedule(LambdaLR):
    """A schedule by a factor that keeps in checkpoints how far it has come, and not its settings."""

    def state_dict(self) -> dict[str, Any]:
        """Returns how many steps have been made, in torch's names."""
        return {"last_epoch": self.last_epoch, "_step_count": self._step_count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on after as many steps, at the rate that the present settings have there."""
        self.last_epoch, self._step_count = state_dict["last_epoch"], state_dict["_step_count"]
        factors = [factor(self.last_epoch) for factor in self.lr_lambdas]
        # The optimizer's state came from the checkpoint too, with the rates of the settings before.
        for group, base, factor in zip(self.optimizer.param_groups, self.base_lrs, factors, strict=True):
            group["initial_lr"], group["lr"] = base, base * factor
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
