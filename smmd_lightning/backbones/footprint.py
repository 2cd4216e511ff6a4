"""What a training step needs, from a copy of the model without weights: bytes by part, and operations.

Unusual here: activations are not guessed from a formula. The decoder runs once on the meta device, where tensors have
shapes but no memory, and every tensor that autograd keeps for the backward pass is counted.

Shape legend: B rows, T positions of a row, D hidden size, V rows of the head, S supervised positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from smmd_lightning.backbones.checking import check_names
from smmd_lightning.backbones.loading import checkpoint_blocks, read_config

if TYPE_CHECKING:
    from smmd_lightning.backbones.base import Backbone

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
SCALES = 1 / 16
"""Bytes that the scales of a quantised weight take beside it: about four bytes for 64 weights."""


@dataclass(frozen=True)
class Footprint:
    """What a step of one process needs, before anything is shared out among processes.

    Attributes:
        parameters: All of them, an adapter's included.
        trained: Those that are trained.
        weights: Bytes of all parameters.
        gradients: Bytes of the gradients.
        optimizer: Bytes of the optimizer's state.
        activations: Bytes kept for the backward pass in decoder and trained tower.
        head: Bytes of logits and their gradient.
        operations: Floating-point operations of a step's forward and backward pass.
    """

    parameters: int
    trained: int
    weights: int
    gradients: int
    optimizer: int
    activations: int
    head: int
    operations: float

    def total(self, shards: int = 1) -> int:
        """Returns the bytes of one process, when weights, gradients and optimizer are spread over `shards`."""
        return (self.weights + self.gradients + self.optimizer) // shards + self.activations + self.head


def footprint(
    backbone: Backbone, rows: int, positions: int, supervised: int, compute: str, states: int = 2, patches: int = 0
) -> Footprint:
    """Counts what a training step needs.

    Args:
        backbone: A backbone that is not loaded; neither it nor torch's generators change.
        rows: B, rows of a micro-batch.
        positions: T, tokens of a row, those of its pictures included.
        supervised: S, supervised positions of the micro-batch.
        compute: Type of the activations, "float32" or "bfloat16".
        states: Tensors that the optimizer keeps for each trained parameter; 2 for AdamW.
        patches: Patches of the micro-batch's pictures. A trained tower is taken to keep as much for each as the decoder
            does, in proportion to sizes; a frozen one keeps nothing.

    Raises:
        OSError: The model cannot be found.
        ValueError: A setting fits nothing in it.
    """
    causal: Any = check_names(backbone)
    wanted = backbone.dtype if backbone.dtype != "auto" else str(read_config(backbone.source)[1].dtype or "float32")
    own = BYTES.get(wanted.removeprefix("torch."), 4)
    parameters = sum(parameter.numel() for parameter in causal.parameters())
    weights = parameters * own
    if backbone.quantization is not None:
        skipped = ("lm_head", "embed_out", *backbone.quantization.skip)
        linear = sum(
            module.weight.numel()
            for name, module in causal.named_modules()
            if isinstance(module, nn.Linear) and not any(part in name.split(".") for part in skipped)
        )
        weights += int(linear * (backbone.quantization.bits / 8 + SCALES)) - linear * own
    if backbone.adapter is not None:
        model = backbone.adapter.attach_without_weights(causal, backbone.language_module(causal))
        added = sum(parameter.numel() for parameter in model.parameters()) - parameters
        parameters, weights = parameters + added, weights + 4 * added
    if backbone.gradient_checkpointing:
        checkpoint_blocks(causal)
    trained = sum(parameter.numel() for parameter in causal.parameters() if parameter.requires_grad)
    trained_bytes = 4 if backbone.adapter is not None else own
    decoder, text = causal.get_decoder(), causal.config.get_text_config()
    kept = saved_bytes(decoder.train(), rows, positions, int(text.hidden_size), getattr(torch, compute))
    tower = causal.get_encoder("image") if patches else None
    if tower is not None and tower is not causal and any(p.requires_grad for p in tower.parameters()):
        inner = tower.config
        width = int(getattr(inner, "embed_dim", None) or inner.hidden_size)
        depth = int(getattr(inner, "depth", None) or inner.num_hidden_layers)
        kept += int(kept * patches * width * depth / (rows * positions * text.hidden_size * text.num_hidden_layers))
    head_rows = int(causal.get_output_embeddings().weight.shape[0])
    head = 2 * min(supervised, backbone.head_chunk) * head_rows * BYTES[compute]
    body = sum(p.numel() for p in decoder.parameters()) - causal.get_input_embeddings().weight.numel()
    tokens = rows * positions
    seen = 0 if tower is None or tower is causal else sum(p.numel() for p in tower.parameters())
    attention = 4.0 * rows * positions**2 * int(text.hidden_size) * int(text.num_hidden_layers)
    forward = 2.0 * (body * tokens + seen * patches) + attention + 2.0 * supervised * head_rows * int(text.hidden_size)
    share = trained / max(parameters, 1)
    again = 1.0 if backbone.gradient_checkpointing else 0.0
    return Footprint(
        parameters=parameters,
        trained=trained,
        weights=weights,
        gradients=trained * trained_bytes,
        optimizer=trained * trained_bytes * states,
        activations=kept,
        head=head,
        operations=forward * (2.0 + share + again),
    )


def saved_bytes(decoder: nn.Module, rows: int, positions: int, hidden: int, dtype: torch.dtype) -> int:
    """Bytes that autograd keeps of a decoder's forward pass, its parameters not among them.

    Args:
        decoder: A decoder on any device, in training mode.
        rows: B.
        positions: T.
        hidden: D.
        dtype: Type of weights and activations while they are counted.
    """
    decoder = decoder.to(dtype)
    device = next(decoder.parameters()).device
    own = {StorageWeakRef(parameter.untyped_storage()) for parameter in decoder.parameters()}
    kept: dict[StorageWeakRef, int] = {}
    alive: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        storage = StorageWeakRef(tensor.untyped_storage())
        if storage not in own and storage not in kept:
            kept[storage] = tensor.untyped_storage().nbytes()
            alive.append(tensor)  # or another tensor could come to lie at the same address
        return tensor

    inputs_BTD = torch.zeros(rows, positions, hidden, dtype=dtype, device=device, requires_grad=True)
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        # A mask of four dimensions is taken as it is; others are looked into, and here is nothing to look at.
        mask = torch.ones(rows, 1, positions, positions, dtype=torch.bool, device=device)
        places = torch.zeros(rows, positions, dtype=torch.int64, device=device)
        output: Any = decoder(inputs_embeds=inputs_BTD, attention_mask=mask, position_ids=places, use_cache=False)
        assert output.last_hidden_state.requires_grad
    return sum(kept.values())
