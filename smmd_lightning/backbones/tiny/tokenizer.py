"""A tokenizer small enough to read: bytes, one token per common word, and the family's markup.

Unusual here: it is built as Qwen's and GPT-2's are (byte-level BPE, digits one by one), because transformers rebuilds
the tokenizers of some families from vocabulary and merges alone, whatever else their file says; but its merges are
found on the spot, from a list of words, so that ids can be written into a test.

One real example, with the Qwen family's markup ("Ġ" is how byte-level vocabularies write a space)::

    >>> tokenizer = build("qwen")
    >>> tokenizer.tokenize("What time? 03:05<|im_end|>")
    ['What', 'Ġtime', '?', 'Ġ', '0', '3', ':', '0', '5', '<|im_end|>']
    >>> tokenizer.decode(tokenizer.encode("What time? 03:05"))
    'What time? 03:05'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from smmd_lightning.backbones.tiny.markup import MARKUPS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = (
    "What", " What", " time", " clock", " show", " shows", " shown", " this", " the", " does", " is", " it", " on",
    " of", " in", " and", " as", " Answer", "HH", " HH", "MM", "SS", " format", " value", " chart", " number", " How",
    " how", " many", " much", "Read", " Read", "user", "assistant", "system", "USER", " ASSISTANT", "INST",
)  # fmt: skip
PIECES = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""No merge crosses these: words with one sign before them, single digits, runs of signs, runs of spaces."""


def build(markup: str, words: Sequence[str] = WORDS) -> PreTrainedTokenizerFast:
    """Builds the tokenizer of a family.

    Args:
        markup: A key of `MARKUPS`.
        words: What becomes one token each, spelled with its leading space where it has one.

    Returns:
        A tokenizer whose ids are, in this order: 256 bytes, merged pieces, special tokens.

    Raises:
        KeyError: There is no such markup.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    style = MARKUPS[markup]
    merges = merges_for([word.replace(" ", "Ġ") for word in words])
    surfaces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in merges)]
    tokenizer = Tokenizer(models.BPE({text: index for index, text in enumerate(surfaces)}, merges))
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PIECES), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in style.tokens])
    if style.begin is not None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[style.begin, "$A"],
            pair=[style.begin, "$A", "$B"],
            special_tokens=[(style.begin, tokenizer.token_to_id(style.begin))],
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=style.begin,
        eos_token=style.end,
        pad_token=style.pad,
        extra_special_tokens=[token for token in style.tokens if token not in (style.begin, style.end, style.pad)],
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
        chat_template=style.template,
    )


def merges_for(words: Sequence[str]) -> list[tuple[str, str]]:
    """Finds merges that make every word one token: the most frequent pair first, in alphabetical order among equals.

    Args:
        words: Words in byte-level spelling.

    Returns:
        Pairs in the order in which BPE applies them.

    Examples:
        >>> merges_for(["this", "the"])
        [('t', 'h'), ('i', 's'), ('th', 'e'), ('th', 'is')]
    """
    pieces = [list(word) for word in dict.fromkeys(words)]
    merges: list[tuple[str, str]] = []
    while counts := Counter(pair for word in pieces for pair in pairwise(word)):
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        pieces = [_merged(word, best) for word in pieces]
    return merges


def _merged(word: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for piece in word:
        if out and (out[-1], piece) == pair:
            out[-1] += piece
        else:
            out.append(piece)
    return out
