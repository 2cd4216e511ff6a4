"""Muon for the matrices of the blocks, AdamW for everything else, as one optimizer.

Muon (Jordan et al. 2024; `torch.optim.Muon`) takes steps along the orthogonalised momentum of a weight matrix. It is
meant for hidden matrices; embeddings, heads, biases and gains go to AdamW, kernels of convolutions to either. On tiny
models trained from random weights it needs about half the steps of AdamW alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from smmd_lightning.compat.of_torch import MuonGroups

NOT_HIDDEN = ("embed", "lm_head", "class_token", "bias")
"""Parts of names of matrices that are no hidden ones."""


def orthogonalised(matrices_NRC: torch.Tensor, coefficients: tuple[float, float, float], steps: int) -> torch.Tensor:
    """Returns matrices whose singular values are near one, with the singular vectors of the given ones.

    The Newton-Schulz iteration X <- a X + (b A + c A^2) X with A = X X^T, on each matrix divided by its norm.

    Args:
        matrices_NRC: N matrices of one shape, float32 or float64.
        coefficients: a, b, c.
        steps: How often.

    Returns:
        As many matrices of the same shape and dtype.
    """
    a, b, c = coefficients
    rows, columns = matrices_NRC.shape[-2:]
    x = matrices_NRC.mT if rows > columns else matrices_NRC
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if rows > columns else x


def plain_name(name: str) -> str:
    """Returns a parameter's name in the Hugging Face model, without the wrappers that a module puts around it.

    >>> plain_name("backbone.model.base_model.model.model.layers.0.self_attn.q_proj.lora_B.default.weight")
    'model.layers.0.self_attn.q_proj.lora_B.default.weight'
    """
    return name.removeprefix("backbone.model.").removeprefix("base_model.model.")


def scale_learning_rates(optimizer: Optimizer, scales: Mapping[str, float]) -> None:
    """Gives parameters whose names fit a pattern another learning rate, in groups of their own.

    Call it before a schedule is made, which then scales all rates alike.

    Args:
        optimizer: Made of named parameters; changed in place.
        scales: Factors of the learning rate by pattern (`fnmatch`) of names in the Hugging Face model; the first
            pattern that fits counts.

    Raises:
        ValueError: A factor is not above 0, or a pattern fits no trained parameter.
    """
    if not scales:
        return
    for pattern, scale in scales.items():
        if not 0 < scale < math.inf:
            raise ValueError(f"lr_scale: the factor of {pattern!r} must be above 0, got {scale}")
    fitted: set[str] = set()
    parts = optimizer.parts if isinstance(optimizer, MuonAdamW) else [optimizer]
    for part in parts:
        part.param_groups[:] = [new for group in part.param_groups for new in _split_group(group, scales, fitted)]
    if isinstance(optimizer, MuonAdamW):
        optimizer.param_groups = [group for part in parts for group in part.param_groups]
        optimizer.share()
    if unfit := [pattern for pattern in scales if pattern not in fitted]:
        raise ValueError(
            f"lr_scale: {unfit} fit no trained parameter, or earlier patterns took them all. Names are those of the "
            "model, for example model.multi_modal_projector.linear_1.weight"
        )


def _split_group(group: dict[str, Any], scales: Mapping[str, float], fitted: set[str]) -> list[dict[str, Any]]:
    """Splits a group by the first pattern that fits each name; notes the patterns that fit in `fitted`."""
    members: dict[str | None, list[int]] = {}
    for place, name in enumerate(group["param_names"]):
        plain = plain_name(name)
        members.setdefault(next((pattern for pattern in scales if fnmatchcase(plain, pattern)), None), []).append(place)
    fitted.update(pattern for pattern in members if pattern is not None)
    return [
        {
            **group,
            "params": [group["params"][place] for place in places],
            "param_names": [group["param_names"][place] for place in places],
            "lr": group["lr"] * (1.0 if pattern is None else scales[pattern]),
        }
        for pattern, places in members.items()
    ]


class AnyMatrixMuon(MuonGroups):
    """`torch.optim.Muon`, which multiplies in float32 on a CPU, and takes kernels of convolutions as matrices.

    torch multiplies in bfloat16 everywhere; a CPU without instructions for that takes 20 times as long. A kernel
    becomes a matrix of output channels by everything else; torch refuses it, so it comes by `add_param_group`.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Takes a step; matrices on other devices as torch does.

        Args:
            closure: Computes the loss again and returns it.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = self.param_groups
        for_torch = [group for group in groups if not _is_ours(group)]
        if for_torch:
            self.param_groups = for_torch
            super().step()
            self.param_groups = groups
        for group in groups:
            if _is_ours(group):
                self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        of_shape = defaultdict(list)
        for parameter, gradient, buffer in zip(*self.gather(group), strict=True):
            buffer.lerp_(gradient, 1 - group["momentum"])
            update = (gradient.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer).flatten(1)
            of_shape[update.shape].append((parameter, update))
        for shape, pairs in of_shape.items():
            updates_NRC = torch.stack([update.float() for _, update in pairs])
            updates_NRC = orthogonalised(updates_NRC, group["ns_coefficients"], group["ns_steps"])
            rate = group["lr"] * 0.2 * math.sqrt(max(shape))  # as long as a step of AdamW ("match_rms_adamw")
            for (parameter, _), update_RC in zip(pairs, updates_NRC, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update_RC.view_as(parameter), alpha=-rate)


def _is_ours(group: dict[str, Any]) -> bool:
    """Whether torch cannot step on a group, or not well."""
    return all(parameter.device.type == "cpu" or parameter.ndim > 2 for parameter in group["params"])


class MuonAdamW(Optimizer):
    """Muon and AdamW under one roof: one learning-rate schedule, one state.

    Args:
        params: Named parameters, `(name, parameter)`.
        lr: Learning rate of AdamW.
        muon_lr: Learning rate of Muon, whose steps are scaled to the size of AdamW's.
        betas: AdamW's decays.
        eps: AdamW's epsilon.
        momentum: Muon's momentum.
        weight_decay: Of both.
        convolutions: Give the kernels of two-dimensional convolutions to Muon too, each as a matrix of output channels
            by everything else; a vision tower's projection of patches is one of them.

    Raises:
        ValueError: Parameters come without names, which tell hidden matrices from embeddings.
    """

    def __init__(
        self,
        params: Iterable[tuple[str, nn.Parameter]],
        lr: float = 1e-3,
        muon_lr: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-8,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        convolutions: bool = False,
    ) -> None:
        named = list(params)
        if not all(isinstance(item, tuple) for item in named):
            raise ValueError("MuonAdamW needs named parameters: pass module.named_parameters().")
        hidden = [item for item in named if item[1].ndim == 2 and not any(part in item[0] for part in NOT_HIDDEN)]
        kernels = [item for item in named if convolutions and hidden and item[1].ndim == 4]
        names = {name for name, _ in hidden + kernels}
        rest = [item for item in named if item[0] not in names]
        self.parts: list[Optimizer] = []
        if hidden:
            muon = AnyMatrixMuon(
                hidden, lr=muon_lr, momentum=momentum, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
            )
            if kernels:
                muon.add_param_group({"params": kernels})
            self.parts.append(muon)
        if rest:
            self.parts.append(AdamW(rest, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        groups = [group for part in self.parts for group in part.param_groups]
        super().__init__(groups, {})
        self.share()

    def share(self) -> None:
        """Lets the parts work on this optimizer's own groups and state, so that schedules and checkpoints see one."""
        start = 0
        for part in self.parts:
            end = start + len(part.param_groups)
            part.param_groups = self.param_groups[start:end]
            part.state = self.state
            start = end

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Steps both parts.

        Args:
            closure: Computes the loss again and returns it.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads groups and state of both parts."""
        super().load_state_dict(state_dict)
        self.share()
