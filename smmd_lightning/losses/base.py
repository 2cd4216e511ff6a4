"""What all numeric losses share: plain settings, a vocabulary bound later, one cost a position.

Unusual: construction knows no tokenizer (so that a loss is three lines of YAML); `bind` computes the tables,
which are no part of the `state_dict`, follow the device only and stay float32 under `.to(bfloat16)`.

Shape legend: K numeric target positions, N numeric tokens, B rows, T positions of a row, V rows of the head.

One real example, in somebody's own training loop::

    numeric_loss = SMMDLoss().bind(NumericVocabulary.from_tokenizer(tokenizer))
    loss = cross_entropy + 0.1 * numeric_loss.from_logits(outputs.logits, labels)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from smmd_lightning.compat.of_torch import KeepsBuffersExact
from smmd_lightning.losses.positions import NumericPositions, after_point
from smmd_lightning.vocabulary import NumericVocabulary, look_up


class NumericLoss(KeepsBuffersExact, ABC):
    """Base of all losses on numeric tokens.

    A subclass takes plain settings in `__init__`, turns a vocabulary into tables in `make_tables`, and says
    what a position costs in `per_position`.

    Attributes:
        vocabulary: The vocabulary it is bound to, None before `bind`.
        needs_log_normalizer: Whether `positions.log_normalizer_K` must be given.
        whole_answers: Whether it gives soft targets for whole answers (`soft_targets`) in place of a cost per numeric
            token.
        reads_head: Whether it costs tokens by the rows of the head (`bind_head`, `over_head`), not numeric logits.
    """

    reads_head: bool = False
    needs_log_normalizer: bool = False
    whole_answers: bool = False
    token_ids_N: Tensor
    index_V: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.vocabulary: NumericVocabulary | None = None

    @abstractmethod
    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Compute what `per_position` needs of the vocabulary: tensors by attribute name, kept in float32."""

    @abstractmethod
    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None) -> Tensor:
        """Cost of each position: (K,) from logits of at least float32, K > 0, autocast off."""

    def bind(self, vocabulary: NumericVocabulary) -> Self:
        """Compute the tables for a vocabulary; binding again replaces them.

        Returns:
            The loss itself, ready to be called.
        """
        tables = {
            "token_ids_N": vocabulary.token_ids,
            "index_V": vocabulary.index_table(int(vocabulary.token_ids.max()) + 1),
            **self.make_tables(vocabulary),
        }
        for name, table in tables.items():
            exact = table.float() if table.is_floating_point() else table
            self.register_buffer(name, exact, persistent=False)
        self.vocabulary = vocabulary
        return self

    def forward(
        self,
        numeric_logits_KN: Tensor,
        target_index_K: Tensor,
        positions: NumericPositions | None = None,
    ) -> Tensor:
        """Cost of each numeric target position.

        Args:
            numeric_logits_KN: (K, N) the head's logits of the vocabulary's tokens, in its order. Computed in
                float32, or in float64 if they are float64.
            target_index_K: (K,) int64 place of the target in the vocabulary.
            positions: Where the targets stand; losses over whole numbers need it.

        Returns:
            (K,) float32; empty but joined to the graph for K = 0.

        Raises:
            RuntimeError: The loss is not bound to a vocabulary.
            ValueError: Shapes disagree with each other or with the vocabulary, or the loss needs `positions`.
        """
        vocabulary = self._bound_vocabulary()
        if numeric_logits_KN.dim() != 2 or numeric_logits_KN.shape[1] != len(vocabulary):
            raise ValueError(
                f"numeric_logits must be (K, {len(vocabulary)}), one column a numeric token, "
                f"got {tuple(numeric_logits_KN.shape)}."
            )
        if target_index_K.shape != numeric_logits_KN.shape[:1]:
            raise ValueError(
                f"target_index must be ({numeric_logits_KN.shape[0]},), one place a row of logits, "
                f"got {tuple(target_index_K.shape)}."
            )
        if self.needs_log_normalizer and (positions is None or positions.log_normalizer_K is None):
            raise ValueError(
                f"{type(self).__name__} as set weighs numeric against all other tokens, so it needs "
                "positions.log_normalizer_K (logsumexp of the whole head's logits)."
            )
        with torch.autocast(numeric_logits_KN.device.type, enabled=False):
            logits_KN = numeric_logits_KN.to(torch.promote_types(numeric_logits_KN.dtype, torch.float32))
            if len(logits_KN) == 0:
                return logits_KN.sum(dim=1)
            return self.per_position(logits_KN, target_index_K, positions)

    def from_logits(self, logits_BTV: Tensor, labels_BT: Tensor, shift: bool = True) -> Tensor:
        """Mean cost of the numeric targets of a batch, for training loops that hold full logits.

        Args:
            logits_BTV: (B, T, V) logits of the head.
            labels_BT: (B, T) int64 token ids; -100 where a position is not supervised.
            shift: True when labels are aligned with the inputs, as Hugging Face models take them (position
                t is predicted at t - 1); False when they are shifted already.

        Returns:
            Scalar float32; a zero joined to the graph when the batch has no numeric target.

        Raises:
            RuntimeError: The loss is not bound to a vocabulary.
            ValueError: Shapes disagree, or the head has fewer rows than the vocabulary's highest id.
        """
        vocabulary = self._bound_vocabulary()
        if logits_BTV.dim() != 3 or labels_BT.shape != logits_BTV.shape[:2]:
            raise ValueError(
                "logits must be (B, T, V) and labels (B, T), "
                f"got {tuple(logits_BTV.shape)} and {tuple(labels_BT.shape)}."
            )
        if logits_BTV.shape[2] < len(self.index_V):
            vocabulary.index_table(logits_BTV.shape[2])  # raises, naming the token
        targets_BT = labels_BT[:, 1:] if shift else labels_BT
        index_BT = look_up(self.index_V.to(labels_BT.device), targets_BT)
        row_K, column_K = (index_BT >= 0).nonzero(as_tuple=True)
        place_K = row_K * logits_BTV.shape[1] + column_K
        logits_PV = logits_BTV.flatten(0, 1)
        log_normalizer_K = None
        if self.needs_log_normalizer:
            wide_KV = logits_PV[place_K]
            log_normalizer_K = wide_KV.to(torch.promote_types(wide_KV.dtype, torch.float32)).logsumexp(1)
        loss_K = self(
            logits_PV[place_K[:, None], self.token_ids_N.to(place_K.device)],
            index_BT[row_K, column_K],
            NumericPositions(
                row_K, column_K, log_normalizer_K, after_point(targets_BT, row_K, column_K, vocabulary.point_id)
            ),
        )
        return loss_K.sum() / max(len(loss_K), 1)

    def _bound_vocabulary(self) -> NumericVocabulary:
        if self.vocabulary is None:
            raise RuntimeError(
                f"{type(self).__name__} does not know yet which tokens are numbers: call "
                "bind(NumericVocabulary.from_tokenizer(tokenizer)) first."
            )
        return self.vocabulary

    def extra_repr(self) -> str:
        """The vocabulary, in `print(module)`."""
        return "not bound" if self.vocabulary is None else repr(self.vocabulary)
