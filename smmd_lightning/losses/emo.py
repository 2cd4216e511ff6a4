r"""EMO: the earth mover's distance between the model's law and the true token, over the embeddings of the whole head.

    loss = sum_v p(v) (1 - cos(e_v, e_y)),   v over the whole head, e the rows of the head, y the true token

To a law that is sure of y every other law has one way to be moved, so the distance is exact, an expected cost. Unusual:
the cost of a token comes from what the model has learned about it, not from the value it writes. Neighbouring digits
are near where their embeddings are.

Shape legend: K numeric target positions, N numeric tokens, V rows of the head, D hidden size, B rows, T positions.

One real example: where all rows are at right angles, a target of probability 1/4 costs 3/4.

Source: Ren et al., "EMO: Earth Mover Distance Optimization for Auto-Regressive Language Modeling", ICLR 2024,
arXiv 2310.04691. Published for all tokens, with a weight of each batch that makes the term as large as the
cross-entropy; here it is taken for numeric tokens, and `loss_weight` weighs it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.positions import NumericPositions
from smmd_lightning.vocabulary import NumericVocabulary


class EMOLoss(NumericLoss):
    """Expected cosine distance of the predicted tokens' rows of the head from the true token's row.

    The rows are those that the head has when training starts, and stay so in the cost: a loss whose distances were
    trained too could make them all zero. Proper for no random truth: the expected cost is least at one token.

    Example:
        >>> loss = EMOLoss().bind(NumericVocabulary(token_ids=[0, 1], values=[0, 1]))
        >>> loss.bind_head(torch.eye(4))
        >>> loss.over_head(torch.zeros(1, 4), torch.tensor([1]))
        tensor([0.7500])
    """

    reads_head = True
    cost_NV: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cost_NV", None, persistent=False)

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Nothing beside the vocabulary itself; `bind_head` makes the costs."""
        self.cost_NV = None
        return {}

    def bind_head(self, head_VD: Tensor) -> None:
        """Computes what each token of the head costs where a numeric token is true, N x V numbers in float32.

        Args:
            head_VD: (V, D) weights of the head; rows of zeros are at right angles to all.

        Raises:
            ValueError: The weights are spread over processes or not there yet.
        """
        vocabulary = self._bound_vocabulary()
        if head_VD.is_meta or hasattr(head_VD, "full_tensor"):
            raise ValueError("EMOLoss needs the whole head in one process: use ddp or one device, not sharded weights.")
        with torch.no_grad():
            rows_VD = F.normalize(head_VD.detach().float(), dim=1)
            self.cost_NV = 1 - rows_VD[vocabulary.token_ids.to(rows_VD.device)] @ rows_VD.T

    def over_head(self, logits_KV: Tensor, target_K: Tensor) -> Tensor:
        """Expected cost of each position, (K,) of at least float32.

        Args:
            logits_KV: (K, V) logits of the whole head.
            target_K: (K,) int64 place of the target in the vocabulary.

        Raises:
            RuntimeError: `bind_head` has not been called.
        """
        if self.cost_NV is None:
            raise RuntimeError("EMOLoss does not know the head yet: call bind_head(model.lm_head.weight) after bind.")
        logits_KV = logits_KV.to(torch.promote_types(logits_KV.dtype, torch.float32))
        return (logits_KV.softmax(1) * self.cost_NV.to(logits_KV)[target_K]).sum(1)

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Not defined: the cost is over the whole head, not over numeric tokens alone."""
        raise RuntimeError("EMOLoss is over the whole head: use from_logits, or the objective.")

    def from_logits(self, logits_BTV: Tensor, labels_BT: Tensor, shift: bool = True) -> Tensor:
        """Mean cost per numeric token, see `NumericLoss.from_logits`."""
        if shift:
            logits_BTV, labels_BT = logits_BTV[:, :-1], labels_BT[:, 1:]
        index_BT = self._bound_vocabulary().index_of(labels_BT)
        numeric_BT = index_BT >= 0
        cost_K = self.over_head(logits_BTV[numeric_BT], index_BT[numeric_BT])
        return cost_K.sum() / max(len(cost_K), 1)
