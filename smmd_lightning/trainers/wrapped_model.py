"""Scores a Hugging Face model at supervised positions only, through its own forward.

Unusual: the model's head is given another forward for one call. It takes the hidden states at supervised positions,
passes them through the real head chunk by chunk, scores each chunk, and hands the model logits of no position at all.
So the call goes through whatever is wrapped around the model (DDP, FSDP, PEFT, accelerate), whose hooks run as
ever, and no tensor of shape (B, T, V) exists.

Shape legend: B rows, T positions of a row, S supervised positions, D hidden size, V rows of the head.

One real example::

    ce_S, = score_wrapped(model, inputs, labels, lambda logits_SV, targets_S: (cross_entropy(logits_SV, targets_S),))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from smmd_lightning.backbones.probes import adjust_logits
from smmd_lightning.backbones.scoring import Score, score_supervised


def score_wrapped(
    model: nn.Module,
    inputs: dict[str, Any],
    labels_BT: Tensor,
    score: Score,
    *,
    chunk: int = 2048,
    plain: nn.Module | None = None,
) -> tuple[Tensor, ...]:
    """Runs a model once and scores its supervised positions.

    Args:
        model: What is called: the Hugging Face model, or what a trainer has wrapped around it.
        inputs: Keyword arguments of the call, without labels.
        labels_BT: (B, T), `IGNORE_INDEX` where nothing is supervised; shifted here, once.
        score: Called with `(logits_SV, targets_S)` for chunks of at most `chunk` positions.
        chunk: Most supervised positions that pass through the head at once; several chunks are recomputed in the
            backward pass.
        plain: The Hugging Face model inside `model`. None: `model` itself.

    Returns:
        The outputs of `score` for all S supervised positions, row by row; joined to the graph for S = 0.

    Raises:
        ValueError: The model has no output head, or its hidden states are not those of the labels' positions (prompt
            tuning adds positions, context parallelism takes some away).
    """
    causal = _unwrapped(plain or model)
    head = causal.get_output_embeddings() if hasattr(causal, "get_output_embeddings") else None
    if head is None:
        raise ValueError(f"{type(causal).__name__} has no output head (get_output_embeddings) to score at.")
    found: list[tuple[Tensor, ...]] = []
    with _scoring_head(head, causal.config.get_text_config(), labels_BT, score, chunk, found):
        model(**inputs, use_cache=False)
    if not found:
        raise ValueError(f"{type(causal).__name__} did not use its output head, so nothing could be scored.")
    return found[0]


def _unwrapped(model: Any) -> Any:
    while hasattr(model, "module"):
        model = model.module
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def _scoring_head(
    head: Any, config: Any, labels_BT: Tensor, score: Score, chunk: int, found: list[tuple[Tensor, ...]]
) -> Iterator[None]:
    """Lets a head score instead of returning logits."""
    own_forward = head.forward

    def forward(hidden_BTD: Tensor) -> Tensor:
        if hidden_BTD.shape[:2] != labels_BT.shape:
            raise ValueError(
                f"the head got hidden states for {tuple(hidden_BTD.shape[:2])} positions and labels for "
                f"{tuple(labels_BT.shape)}. Prompt tuning and context parallelism are not supported."
            )
        found.append(
            score_supervised(
                hidden_BTD,
                labels_BT.to(hidden_BTD.device),
                lambda hidden_SD: adjust_logits(own_forward(hidden_SD), config),
                score,
                chunk,
            )
        )
        # Joined to the graph of the scores: DDP looks in what a forward returns for the parameters that it used.
        joined = sum(output.sum() for output in found[0] if output.is_floating_point())
        return hidden_BTD.new_zeros(len(hidden_BTD), 0, int(head.weight.shape[0])) + joined

    head.forward = forward
    try:
        yield
    finally:
        if "forward" in vars(head):
            del head.forward
