"""Several rows as one, without padding.

Shape legend: B rows, T positions.
"""

from __future__ import annotations

from torch import Tensor

from smmd_lightning.types import IGNORE_INDEX


def pack_rows(inputs: dict[str, Tensor], labels_BT: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Puts rows behind each other, without their padding.

    Positions restart with each row, which is how attention implementations of transformers know where one ends;
    the first label of a row is dropped, as nothing in its row predicts it.

    Args:
        inputs: `input_ids` (B, T), `attention_mask` (B, T).
        labels_BT: Their labels.

    Returns:
        `input_ids` and `position_ids`, (1, all tokens), and labels of that shape.

    Examples:
        >>> import torch
        >>> ids, mask = torch.tensor([[5, 6, 0], [7, 8, 9]]), torch.tensor([[1, 1, 0], [1, 1, 1]])
        >>> inputs, labels = pack_rows({"input_ids": ids, "attention_mask": mask}, ids)
        >>> inputs["input_ids"].tolist(), inputs["position_ids"].tolist(), labels.tolist()
        ([[5, 6, 7, 8, 9]], [[0, 1, 0, 1, 2]], [[-100, 6, -100, 8, 9]])
    """
    keep_BT = inputs["attention_mask"].bool()
    positions_BT = keep_BT.cumsum(dim=1) - 1
    packed = {"input_ids": inputs["input_ids"][keep_BT][None], "position_ids": positions_BT[keep_BT][None]}
    labels_BT = labels_BT.masked_fill(positions_BT == 0, IGNORE_INDEX)
    return packed, labels_BT[keep_BT][None]
