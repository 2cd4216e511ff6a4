"""What a model believed of the numbers it could have written, beside the one it wrote.

Unusual: `generate` is not asked for all logits (32 steps of 150,000 columns per row); a logits processor that changes
nothing keeps the numeric columns alone.

Shape legend: B rows, T generated positions, N numeric tokens, V rows of the head.

One real example, for a generated "03:05" of which the 5 was a close call::

    {"written": "5", "expected": 5.41, "spread": 0.52, "share": 0.998, "values": [[5, 0.6], [6, 0.39]]}
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd_lightning.vocabulary import NumericVocabulary

LEAST, MOST = 0.005, 12
"""Values are listed from this probability on, and at most so many of them."""


class NumericRecorder:
    """A logits processor for `transformers`' `generate` that keeps numeric logits and changes nothing.

    Args:
        vocabulary: The numeric tokens.

    Example:
        >>> recorder = NumericRecorder(NumericVocabulary(token_ids=[1, 2], values=[3, 4]))
        >>> _ = recorder(torch.tensor([[0]]), torch.tensor([[0.0, 1.0, 1.0]]).log())
        >>> recorder.describe(torch.tensor([[2]]))
        [[{'written': '4', 'expected': 3.5, 'spread': 0.5, 'share': 1.0, 'values': [[3.0, 0.5], [4.0, 0.5]]}]]
    """

    def __init__(self, vocabulary: NumericVocabulary) -> None:
        self.vocabulary = vocabulary
        self._logits: list[Tensor] = []
        self._normalizers: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Keeps the numeric columns of one step.

        Args:
            input_ids: (B, L) ids so far.
            scores: (B, V) logits of the next token.

        Returns:
            The same scores.
        """
        self._logits.append(scores[:, self.vocabulary.token_ids.to(scores.device)].float())
        self._normalizers.append(scores.float().logsumexp(1))
        return scores

    def describe(self, ids_BT: Tensor) -> list[list[dict[str, Any]]]:
        """Returns, for each row, one plain entry a numeric token it wrote, in reading order.

        Entries hold `written`, the text; `expected` and `spread`, mean and standard deviation of the value under the
        softmax over numeric tokens; `share`, the probability of all numeric tokens; `values`, the likely values
        with their probabilities, twins ("7" and " 7") added up.

        Args:
            ids_BT: The tokens that `generate` returned for the steps kept.

        Raises:
            ValueError: Other numbers of rows or steps than were kept.
        """
        if ids_BT.shape[1] != len(self._logits) or (self._logits and len(self._logits[0]) != len(ids_BT)):
            kept = (len(self._logits[0]) if self._logits else 0, len(self._logits))
            raise ValueError(
                f"Kept (rows, steps) {kept}, but got ids of {tuple(ids_BT.shape)}; beams are not supported."
            )
        if not self._logits:
            return [[] for _ in ids_BT]
        logits_BTN = torch.stack(self._logits, 1).double().cpu()
        share_BT = (logits_BTN.logsumexp(2) - torch.stack(self._normalizers, 1).double().cpu()).exp()
        p_BTN = logits_BTN.softmax(2)
        values_N = self.vocabulary.values
        expected_BT = p_BTN @ values_N
        spread_BT = (p_BTN @ values_N.square() - expected_BT.square()).clamp_min(0).sqrt()
        written_BT = self.vocabulary.index_of(ids_BT.cpu())
        return [
            [
                {
                    "written": self.vocabulary.surfaces[place].strip(),
                    "expected": round(expected_BT[row, step].item(), 4),
                    "spread": round(spread_BT[row, step].item(), 4),
                    "share": round(share_BT[row, step].item(), 4),
                    "values": self._likely(p_BTN[row, step]),
                }
                for step, place in enumerate(places)
                if place >= 0
            ]
            for row, places in enumerate(written_BT.tolist())
        ]

    def _likely(self, p_N: Tensor) -> list[list[float]]:
        by_value: dict[float, float] = {}
        for value, p in zip(self.vocabulary.values.tolist(), p_N.tolist(), strict=True):
            by_value[value] = by_value.get(value, 0.0) + p
        best = sorted(by_value.items(), key=lambda item: -item[1])[:MOST]
        return sorted([value, round(p, 4)] for value, p in best if p >= LEAST)
