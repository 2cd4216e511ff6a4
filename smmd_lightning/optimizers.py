"""Muon for the matrices of the blocks, AdamW for everything else, as one optimizer.

Muon (Jordan et al. 2024; `torch.optim.Muon`) takes steps along the orthogonalised momentum of a weight matrix. It is
meant for hidden matrices only; embeddings, heads, biases and gains go to AdamW. On tiny models trained from random
weights it needs about half the steps of AdamW alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Muon, Optimizer

NOT_HIDDEN = ("embed", "lm_head", "class_token")
"""Parts of names of matrices that are no hidden ones."""


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
    ) -> None:
        named = list(params)
        if not all(isinstance(item, tuple) for item in named):
            raise ValueError("MuonAdamW needs named parameters: pass module.named_parameters().")
        hidden = [item for item in named if item[1].ndim == 2 and not any(part in item[0] for part in NOT_HIDDEN)]
        names = {name for name, _ in hidden}
        rest = [item for item in named if item[0] not in names]
        self.parts: list[Optimizer] = []
        if hidden:
            self.parts.append(
                Muon(hidden, lr=muon_lr, momentum=momentum, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
            )
        if rest:
            self.parts.append(AdamW(rest, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
        groups = [group for part in self.parts for group in part.param_groups]
        super().__init__(groups, {})
        self._share()

    def _share(self) -> None:
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
        self._share()
