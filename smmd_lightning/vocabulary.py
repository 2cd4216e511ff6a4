"""Which tokens of a tokenizer are numbers, and what they are worth.

Read from the tokenizer's own table, never by probing `encode(str(n))`: a SentencePiece tokenizer answers
that with a space piece and a digit, so probing finds no digit at all, and `decode` gives every digit twice,
because the byte-fallback piece `<0x37>` reads "7" as well. The table is only read; no token is ever added.

Shape legend: N numeric tokens, V rows of the model's head.

One real example: in Llama 3's table "0" to "999" are one token each, beside 110 more with leading zeros
("007") and the digits of other scripts ("٣") that Python's `int` would accept; the vocabulary holds the
first thousand::

    NumericVocabulary.from_tokenizer(tokenizer)   # NumericVocabulary(1000 tokens, values 0 to 999)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from smmd_lightning.token_table import digits_of_a_token, plain_entries

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PIECE = re.compile(r"[0-9]{1,3}|[-.:,/]")
"""Texts of tokens that whole numbers, fractions and times of day are written with."""


class NumericVocabulary:
    """The numeric sub-vocabulary V_num: token ids with their values, sorted by (value, id).

    Never changes after it is built, and compares equal to another with the same ids and values.

    Attributes:
        token_ids: (N,) int64 ids.
        values: (N,) float64 values; bare and space-prefixed forms of one number are two entries of one value.
        surfaces: N texts as the model writes them, a leading space kept: `("7", " 7")`.
        pieces: Ids of all tokens that whole answers are written with, by text: digits with leading zeros too ("05"),
            "-", ".", ":", "," and "/", each also with a leading space. Losses over whole answers read it.
        group: How many digits the tokenizer puts into one token, from the left: 1 or 3. None: it has no such rule.

    Example:
        >>> vocabulary = NumericVocabulary(token_ids=[30, 10, 20], values=[9, 3, 4])
        >>> vocabulary
        NumericVocabulary(3 tokens, values 3 to 9)
        >>> vocabulary.token_ids.tolist()
        [10, 20, 30]
        >>> vocabulary.index_of(torch.tensor([20, 21, -100])).tolist()
        [1, -1, -1]
    """

    def __init__(
        self,
        token_ids: Sequence[int],
        values: Sequence[float],
        surfaces: Sequence[str] | None = None,
        pieces: Mapping[str, int] | None = None,
        group: int | None = 1,
    ) -> None:
        """Build from what is already known; see `from_tokenizer` for the usual way.

        Args:
            token_ids: N different ids, not negative, in any order.
            values: The N values, finite.
            surfaces: The N texts of the tokens; written from the values when left out.
            pieces: See the attribute; the surfaces when left out.
            group: See the attribute.

        Raises:
            ValueError: Lengths differ, an id is negative or repeated, a value is not finite, or fewer than
                two different values are there (no distance to learn from).
        """
        ids = [int(token_id) for token_id in token_ids]
        numbers = [float(value) for value in values]
        texts = [_write(number) for number in numbers] if surfaces is None else list(surfaces)
        if not len(ids) == len(numbers) == len(texts):
            raise ValueError(
                "token_ids, values and surfaces must be equally long, "
                f"got {len(ids)}, {len(numbers)} and {len(texts)} entries."
            )
        if len(set(ids)) < len(ids) or min(ids, default=0) < 0:
            raise ValueError("token_ids must be different from each other and not negative.")
        if not all(-float("inf") < number < float("inf") for number in numbers):
            raise ValueError("values must be finite numbers.")
        if len(set(numbers)) < 2:
            raise ValueError(
                "A numeric vocabulary needs at least two different values to have a distance between them, "
                f"got {len(set(numbers))} among {len(ids)} tokens."
            )
        order = sorted(range(len(ids)), key=lambda i: (numbers[i], ids[i]))
        # On the CPU whatever the default device: models are also built under `torch.device("meta")`.
        self._token_ids = torch.tensor([ids[i] for i in order], dtype=torch.int64, device="cpu")
        self._values = torch.tensor([numbers[i] for i in order], dtype=torch.float64, device="cpu")
        self._surfaces = tuple(texts[i] for i in order)
        self.pieces = dict(pieces) if pieces is not None else dict(zip(texts, ids, strict=True))
        self.group = group

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: PreTrainedTokenizerBase,
        largest: float = 999,
        single_digits: bool = False,
        leading_zeros: bool = False,
        decimals: bool = False,
    ) -> NumericVocabulary:
        """Find the numeric tokens in a tokenizer's table.

        An entry is numeric when its text, one leading space aside, is written in ASCII digits; special,
        control and byte-fallback tokens are not. Tokens that a user added as plain text are.

        Args:
            tokenizer: Any Hugging Face tokenizer, fast or slow; it is only read.
            largest: Numbers above this are left out.
            single_digits: Take "0" to "9" only, also where larger numbers are single tokens.
            leading_zeros: Take "007" (worth 7) as well.
            decimals: Take "3.14" as well, where a table has it.

        Raises:
            ValueError: The table holds no two different numbers that the settings admit, or they contradict
                each other.
        """
        if single_digits and (decimals or leading_zeros):
            raise ValueError("single_digits=True leaves no room for decimals or leading_zeros; set one or the other.")
        whole = "[0-9]" if single_digits else "[0-9]+" if leading_zeros else "(?:0|[1-9][0-9]*)"
        number = re.compile(whole + (r"(?:\.[0-9]+)?" if decimals else ""))
        plain = list(plain_entries(tokenizer))
        entries = [
            (token_id, float(text), surface)
            for token_id, text, surface in plain
            if number.fullmatch(text) and float(text) <= largest
        ]
        if len({value for _, value, _ in entries}) < 2:
            raise ValueError(
                f"The tokenizer {getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__!r} has "
                f"{'no numeric token' if not entries else 'only one number'} in its table of "
                f"{len(tokenizer.get_vocab())} entries with largest={largest:g}, "
                f"single_digits={single_digits}, leading_zeros={leading_zeros}, decimals={decimals}; "
                "a numeric loss needs two. Use a tokenizer that writes numbers with ASCII digits, or train "
                "without a numeric loss."
            )
        pieces = {surface: token_id for token_id, text, surface in plain if _PIECE.fullmatch(text)}
        ids, values, surfaces = zip(*entries, strict=True)
        return cls(ids, values, surfaces, pieces, digits_of_a_token(tokenizer, pieces))

    @property
    def token_ids(self) -> Tensor:
        """(N,) int64 token ids, sorted by (value, id)."""
        return self._token_ids

    @property
    def values(self) -> Tensor:
        """(N,) float64 values, ascending."""
        return self._values

    @property
    def surfaces(self) -> tuple[str, ...]:
        """The N texts, a leading space kept."""
        return self._surfaces

    @property
    def point_id(self) -> int | None:
        """Id of the decimal point's token, None where no token is known for it."""
        return self.pieces.get(".")

    @property
    def begins_number(self) -> Tensor:
        """(N,) bool: the entry carries a leading space, so it cannot go on with the number before it."""
        return torch.tensor([text[:1].isspace() for text in self._surfaces], device="cpu")

    @property
    def digit_counts(self) -> Tensor:
        """(N,) int64: how many digits the entry writes, by which the entries before it are worth more."""
        return torch.tensor([sum(map(str.isdigit, text)) for text in self._surfaces], device="cpu")

    def index_table(self, head_rows: int) -> Tensor:
        """Map every row of the model's head to its place in V_num.

        Args:
            head_rows: V, the rows of the model's head, which may be more or fewer than `len(tokenizer)`.

        Returns:
            (V,) int64, -1 where the token is not numeric.

        Raises:
            ValueError: A numeric token lies outside the head.
        """
        highest = int(self._token_ids.max())
        if highest >= head_rows:
            surface = self._surfaces[int(self._token_ids.argmax())]
            raise ValueError(
                f"The numeric token {surface!r} has id {highest}, but the model's head has {head_rows} rows "
                f"(ids 0 to {head_rows - 1}). Tokenizer and model do not belong together, or the model's "
                "embeddings must be resized first."
            )
        table_V = torch.full((head_rows,), -1, dtype=torch.int64, device="cpu")
        table_V[self._token_ids] = torch.arange(len(self), device="cpu")
        return table_V

    def index_of(self, ids: Tensor) -> Tensor:
        """Place in V_num of each id, -1 where it is not numeric (or a label that is not supervised).

        Args:
            ids: Integer ids of any shape, on any device.

        Returns:
            int64 of the same shape, on the same device.
        """
        return look_up(self.index_table(int(self._token_ids.max()) + 1).to(ids.device), ids)

    def is_numeric(self, ids: Tensor) -> Tensor:
        """Bool of the same shape as `ids`: whether each is a numeric token."""
        return self.index_of(ids) >= 0

    def __len__(self) -> int:
        return len(self._surfaces)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumericVocabulary):
            return NotImplemented
        return torch.equal(self._token_ids, other._token_ids) and torch.equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash((tuple(self._token_ids.tolist()), tuple(self._values.tolist())))

    def __repr__(self) -> str:
        spaced = int(self.begins_number.sum())
        return (
            f"NumericVocabulary({len(self)} tokens, values {self._values[0]:g} to {self._values[-1]:g}"
            + (f", {spaced} with a leading space" if spaced else "")
            + ")"
        )


def look_up(index_V: Tensor, ids: Tensor) -> Tensor:
    """Read an index table at ids of any shape, also at ids it has no row for (-100, or above the table).

    Args:
        index_V: (V,) int64 table as `NumericVocabulary.index_table` makes it.
        ids: Integer ids on the same device.

    Returns:
        int64 of the shape of `ids`, -1 where the id is not numeric.
    """
    inside = (ids >= 0) & (ids < len(index_V))
    return torch.where(inside, index_V[ids.long().clamp(0, len(index_V) - 1)], -1)


def _write(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
