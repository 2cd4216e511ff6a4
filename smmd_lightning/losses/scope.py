"""Which numbers of a trained text the numeric loss acts on: all, or the last one of each answer alone.

Of an answer that reasons ("48 / 2 = 24, 48 + 24 = 72 #### 72") most numbers are steps on the way, often copied from the
question. `scope: answer` leaves the numeric loss the final number; cross-entropy teaches the rest.

Unusual: found by tensor arithmetic on token ids, like all positions, so that the counts that an optimizer step divides
by come from ids alone. An answer is a run of supervised tokens; a number is a run of numeric tokens, where a single
".", ",", ":" or "/" between two of them joins them, so that 3.75, 1,250, 04:35 and 3/4 are one number each.

Shape legend: B rows, T positions, N numeric tokens, J joining tokens.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from smmd_lightning.types import IGNORE_INDEX
from smmd_lightning.vocabulary import NumericVocabulary

Scope = Literal["answer", "all"]
"""`answer`: the last number of each answer; `all`: every number."""

JOINING = (".", ",", ":", "/")
"""Texts of tokens that join the numbers on both sides into one."""


class FinalNumbers(nn.Module):
    """Finds the numeric tokens of the last number of each answer.

    Args:
        vocabulary: The numeric tokens.

    Example:
        >>> digits = {str(digit): digit for digit in range(10)}
        >>> final = FinalNumbers(NumericVocabulary(digits.values(), digits.values(), pieces=digits | {".": 20}))
        >>> targets = torch.tensor([[1, 2, 30, 3, 20, 5, 20, 31]])  # "12", a word, "3.5", a full stop, an end token
        >>> final(targets, torch.where(targets < 10, targets, -1)).int().tolist()
        [[0, 0, 0, 1, 0, 1, 0, 0]]
    """

    begins_N: Tensor
    joining_J: Tensor

    def __init__(self, vocabulary: NumericVocabulary) -> None:
        super().__init__()
        joining = [vocabulary.pieces[text] for text in JOINING if text in vocabulary.pieces]
        # On the CPU whatever the default device: models are also built under `torch.device("meta")`.
        self.register_buffer("begins_N", vocabulary.begins_number, persistent=False)
        joining_J = torch.tensor(joining, dtype=torch.int64, device="cpu")
        self.register_buffer("joining_J", joining_J, persistent=False)

    def forward(self, targets_BT: Tensor, index_BT: Tensor) -> Tensor:
        """Finds them.

        Args:
            targets_BT: (B, T) or (T,) int64 target ids, `IGNORE_INDEX` where nothing is supervised, which is what parts
                answers from each other; rows are apart in any case.
            index_BT: int64 of the same shape, each target's place in the numeric vocabulary, -1 where it is no number.

        Returns:
            Bool of the same shape.
        """
        supervised, numeric = targets_BT != IGNORE_INDEX, index_BT >= 0
        begins = numeric & self.begins_N[index_BT.clamp(min=0)]
        joining = torch.isin(targets_BT, self.joining_J) & _before(numeric) & _behind(numeric & ~begins)
        part = numeric | joining
        answer = (supervised & ~_before(supervised)).flatten().cumsum(0)
        number = (numeric & (begins | ~_before(part))).flatten().cumsum(0)
        # One slot a position is always enough, and needs no look at the device to size.
        last = torch.zeros(len(answer) + 1, dtype=torch.int64, device=answer.device)
        last.scatter_reduce_(0, answer, number * numeric.flatten(), "amax")
        return numeric & (number == last[answer]).view_as(numeric)


def _before(flags: Tensor) -> Tensor:
    """The flag of the position before, within each row."""
    return torch.cat([torch.zeros_like(flags[..., :1]), flags[..., :-1]], dim=-1)


def _behind(flags: Tensor) -> Tensor:
    """The flag of the position behind, within each row."""
    return torch.cat([flags[..., 1:], torch.zeros_like(flags[..., :1])], dim=-1)
