r"""Whole-number loss: a target law over whole answers, handed down to the tokens by the chain rule.

    t_i(c) = q-mass of the answers that begin with the true tokens before i and go on with c, over the q-mass of all
             answers that begin so
    loss   = sum_i KL(t_i || p_i), the terms of KL(q || P) over whole answers that stand along the true answer

Unusual: digits are never compared with digits. The law q lives on answers ("03:59", "04:00", "04:01"), so carries,
places and lengths come out right: of 10 +- 1 the "9" is a first token, and the "1" goes on with "0" or "1". What ends a
number is a continuation like any other, and so are a decimal point, a colon and a minus sign. One forward pass is
enough.

Shape legend: B rows, T positions of a row, S supervised positions, V rows of the head, P pairs of a position and a
token that may stand there.

One real example, a true "9", q the masses .25, .5, .25 of 8, 9 and 10: at the first token t is .25 for "8", .5 for "9"
and .25 for "1"; after "9" it is 1 for the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from smmd_lightning.answers.nearby import AnswerLaw, Shape, Unit
from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.positions import NumericPositions
from smmd_lightning.token_table import digit_groups
from smmd_lightning.types import IGNORE_INDEX
from smmd_lightning.vocabulary import NumericVocabulary

KEPT = 100_000
"""Numbers whose targets are remembered."""
_NUMBERS = re.compile(r"(?<![ds][.:])(?:(?<![ds])m?d|Md|s)d*(?:\.d+|(?::d+){1,2})?(?![.:]?d)")
"""A number among the kinds of tokens: d digits, s digits after a space, m minus, M minus after a space, x others."""


class SoftTargets(NamedTuple):
    """What may stand at supervised positions, and with which mass; positions that are left out have no such target.

    Attributes:
        place_P: (P,) int64 supervised position, counted over all rows.
        token_P: (P,) int64 token.
        mass_P: (P,) float32, sums to one at each position.
    """

    place_P: Tensor
    token_P: Tensor
    mass_P: Tensor


class WholeNumberLoss(NumericLoss):
    """KL divergence from a law over whole answers to the model's probabilities of them, along the true answer.

    With P the model's law over answers, KL(q || P) is a sum over all prefixes of the divergence of what comes next,
    times the prefix's mass under q. The loss takes the true answer's prefixes alone, each with weight one: the rest
    would need a forward pass per prefix. Labels drawn from q (`answer_jitter` of the data modules) under plain
    cross-entropy give the whole sum, with noise. Means are taken over numeric tokens, as for every numeric loss.

    It is not proper for the law of a random truth, but for one that q has widened: after a prefix, the best prediction
    is the mean of t over the truths with that prefix. Cross-entropy beside it is proper for the law itself.

    Numbers are runs of digits with an optional minus sign and decimals, or times of day (HH:MM, HH:MM:SS). Others that
    hold such characters (1.2.3) have no target.

    Example:
        >>> digits = NumericVocabulary(token_ids=range(10), values=range(10))
        >>> loss = WholeNumberLoss(widths=[0.5]).bind(digits)
        >>> targets = loss.soft_targets(torch.tensor([[-100, 9, 11]]))  # "9" and an end token
        >>> likely = targets.mass_P > 0.01
        >>> targets.token_P[likely].tolist(), [round(mass, 2) for mass in targets.mass_P[likely].tolist()]
        ([8, 9, 1, 11], [0.11, 0.79, 0.11, 1.0])
    """

    whole_answers = True

    def __init__(
        self,
        shape: Shape = "gaussian",
        widths: Sequence[float] = (1.0,),
        unit: Unit = "last_place",
        period: float | None = None,
        hours: int = 12,
        hour_digits: int = 2,
        signed: bool = False,
    ) -> None:
        """Take the settings; see `AnswerLaw` for what each means.

        Raises:
            ValueError: A setting is outside its range.
        """
        super().__init__()
        self.shape, self.widths, self.unit = shape, tuple(widths), unit
        self.period, self.hours, self.hour_digits, self.signed = period, hours, hour_digits, signed
        self.law = AnswerLaw(shape, self.widths, unit, period, hours, hour_digits, signed)
        self._kept: dict[tuple[int, ...], list[list[tuple[int, float]]]] = {}

    def make_tables(self, vocabulary: NumericVocabulary) -> dict[str, Tensor]:
        """Checks that numbers can be spelled with the vocabulary's pieces."""
        self._kept = {}
        self._texts = {token_id: text for text, token_id in vocabulary.pieces.items()}
        if vocabulary.group is None:
            raise ValueError(
                "WholeNumberLoss must know how numbers are cut into tokens, one digit each or three from the left, but "
                "this tokenizer cuts them otherwise. Use another loss or another tokenizer."
            )
        digits = 10**vocabulary.group
        missing = [text for text in map(str, range(digits)) if text not in vocabulary.pieces]
        if missing or (self.signed and "-" not in vocabulary.pieces):
            raise ValueError(
                f"WholeNumberLoss needs a token for every group of {vocabulary.group} digits"
                f"{' and for the minus sign' if self.signed else ''}; missing: {', '.join([*missing, '-'][:5])}."
            )
        return {}

    def per_position(self, logits_KN: Tensor, target_K: Tensor, positions: NumericPositions | None = None) -> Tensor:
        """Not defined: a number's cost is not a sum over its numeric tokens alone."""
        raise RuntimeError("WholeNumberLoss sees whole answers: use from_logits, or the objective.")

    def soft_targets(self, labels_BT: Tensor, inside_BT: Tensor | None = None) -> SoftTargets:
        """Finds the numbers among the labels, and what may stand at each of their tokens and right after them.

        Args:
            labels_BT: (B, T) token ids; -100 where nothing is supervised. Aligned with the inputs: the first column has
                no prediction.
            inside_BT: (B, T) bool, the numeric tokens whose numbers get targets. None: all.

        Returns:
            The targets, on the labels' device.
        """
        vocabulary = self._bound_vocabulary()
        places: list[int] = []
        tokens: list[int] = []
        masses: list[float] = []
        place = 0
        inside = None if inside_BT is None else inside_BT[:, 1:].tolist()
        for number, row in enumerate(labels_BT[:, 1:].tolist()):
            kinds = "".join(" " if token == IGNORE_INDEX else self._kind(token) for token in row)
            supervised = [token != IGNORE_INDEX for token in row]
            before = [place]
            for each in supervised:
                before.append(before[-1] + each)
            place = before[-1]
            for found in _NUMBERS.finditer(kinds):
                first, end = found.span()
                if inside is not None and not any(inside[number][first:end]):
                    continue
                follows = row[end] if end < len(row) and supervised[end] else IGNORE_INDEX
                key = (*row[first:end], follows)
                if key not in self._kept:
                    if len(self._kept) >= KEPT:
                        self._kept.clear()
                    self._kept[key] = self._number(row[first:end], follows, vocabulary)
                for step, pairs in enumerate(self._kept[key]):
                    places += [before[first] + step] * len(pairs)
                    tokens += [token for token, _ in pairs]
                    masses += [mass for _, mass in pairs]
        device = labels_BT.device
        return SoftTargets(
            torch.tensor(places, dtype=torch.int64, device=device),
            torch.tensor(tokens, dtype=torch.int64, device=device),
            torch.tensor(masses, dtype=torch.float32, device=device),
        )

    def from_logits(self, logits_BTV: Tensor, labels_BT: Tensor, shift: bool = True) -> Tensor:
        """Mean cost per numeric token, see `NumericLoss.from_logits`."""
        vocabulary = self._bound_vocabulary()
        if not shift:
            labels_BT = torch.cat([torch.full_like(labels_BT[:, :1], IGNORE_INDEX), labels_BT], dim=1)
        else:
            logits_BTV = logits_BTV[:, :-1]
        supervised = labels_BT[:, 1:] != IGNORE_INDEX
        targets = self.soft_targets(labels_BT)
        logits_SV = logits_BTV[supervised].to(torch.promote_types(logits_BTV.dtype, torch.float32))
        log_normalizer_P = logits_SV.logsumexp(1)[targets.place_P]
        total = divergence(logits_SV[targets.place_P, targets.token_P] - log_normalizer_P, targets.mass_P)
        numeric = vocabulary.is_numeric(labels_BT[:, 1:]).sum().clamp(min=1)
        return total / numeric + logits_BTV.sum() * 0.0

    def _kind(self, token: int) -> str:
        text = self._texts.get(token)
        if text is None:
            return "x"
        if text[-1].isdigit():
            return "s" if text[0] == " " else "d"
        return {"-": "m", " -": "M"}.get(text, text)

    def _number(self, ids: list[int], follows: int, vocabulary: NumericVocabulary) -> list[list[tuple[int, float]]]:
        """Returns the pairs (token, mass) of each token of a number, and of the token that follows it."""
        assert vocabulary.group is not None
        text = "".join(self._texts[token] for token in ids)
        try:
            answers = self.law.near(text.strip())
        except ValueError:  # 99:99 and the like
            return []
        true = [self._texts[token].strip() for token in ids]
        if pieces_of(text.strip(), vocabulary.group) != true:
            return []  # written with other tokens than a tokenizer would
        space = " " if text[0] == " " else ""
        found = continuations(true, answers, vocabulary.group)
        steps = []
        for step, masses in enumerate(found):
            lead = space if step == 0 else ""
            pairs = [
                (follows if piece == END else vocabulary.pieces.get(lead + piece), m) for piece, m in masses.items()
            ]
            known = [(token, mass) for token, mass in pairs if token is not None and token != IGNORE_INDEX and mass > 0]
            total = sum(mass for _, mass in known)
            steps.append([(token, mass / total) for token, mass in known])
        return steps if follows != IGNORE_INDEX else steps[:-1]


END = ""
"""The piece that ends an answer."""


def pieces_of(answer: str, group: int) -> list[str]:
    """Cuts an answer into the texts of its tokens.

    Example:
        >>> pieces_of("-1234.50", 3)
        ['-', '123', '4', '.', '50']
    """
    return [
        piece
        for run in re.findall(r"[0-9]+|[-.:]", answer)
        for piece in (digit_groups(run, group) if run[0].isdigit() else [run])
    ]


def continuations(true: Sequence[str], answers: Sequence[tuple[str, float]], group: int) -> list[dict[str, float]]:
    """Computes the mass of what may come next, given the true pieces before, at each piece and at the end.

    Args:
        true: The true answer's pieces.
        answers: Answers with their masses.
        group: Digits per piece.

    Returns:
        For each of the true pieces, and for `END`, the mass of each piece, not normalised.

    Example:
        >>> continuations(["1", "0"], [("9", 0.25), ("10", 0.5), ("11", 0.25)], 1)
        [{'9': 0.25, '1': 0.75}, {'0': 0.5, '1': 0.25}, {'': 0.5}]
    """
    path = [*true, END]
    found: list[dict[str, float]] = [{} for _ in path]
    for answer, mass in answers:
        for step, piece in enumerate([*pieces_of(answer, group), END]):
            found[step][piece] = found[step].get(piece, 0.0) + mass
            if piece != path[step]:
                break
    return found


def divergence(log_probability_P: Tensor, mass_P: Tensor) -> Tensor:
    """Compute sum over positions of KL(t || p), scalar, from the log-probabilities of the tokens that have mass.

    Args:
        log_probability_P: (P,) log p, over the whole head.
        mass_P: (P,) t, above 0.
    """
    mass_P = mass_P.to(log_probability_P)
    return (mass_P * (mass_P.log() - log_probability_P)).sum()
