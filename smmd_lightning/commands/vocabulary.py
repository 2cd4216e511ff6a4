"""The command `smmd-vocab`: which tokens of a tokenizer a numeric loss would look at.

One real example::

    $ smmd-vocab meta-llama/Meta-Llama-3-8B
    numeric tokens   1000
    values           every integer from 0 to 999
    written          1000 bare, 0 with a leading space
    left out         110 with leading zeros ("00", "01", "02", …), 0 above 999

    text       tokens       of them numeric
    "7"        7            1
    " 42"      Ġ | 42       1
    "123"      123          1
    "3.14"     3 | . | 14   2
    "1,234"    1 | , | 234  2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from smmd_lightning.checkpoints.atomic import close_umask
from smmd_lightning.vocabulary import NumericVocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SAMPLES = ("7", " 42", "123", "3.14", "1,234")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the numeric vocabulary of a tokenizer.

    Args:
        argv: Arguments after the program's name; those of the process when left out.

    Returns:
        Exit status: 0, or 1 with a message on stderr when the tokenizer cannot be read or has no numbers.
    """
    close_umask()
    arguments = _parser().parse_args(argv)
    from transformers import AutoTokenizer  # heavy; `--help` does without

    from smmd_lightning.backbones.locate import locate, split_gguf

    try:
        folder, gguf = split_gguf(locate(arguments.tokenizer))
        found = {} if gguf is None else {"gguf_file": gguf}
        tokenizer = AutoTokenizer.from_pretrained(folder, revision=arguments.revision, trust_remote_code=False, **found)
        vocabulary = NumericVocabulary.from_tokenizer(
            tokenizer,
            largest=arguments.largest,
            single_digits=arguments.single_digits,
            leading_zeros=arguments.leading_zeros,
            decimals=arguments.decimals,
        )
    except (OSError, ValueError, RuntimeError) as error:
        print(f"smmd-vocab: {error}", file=sys.stderr)
        return 1
    _print_report(tokenizer, vocabulary, arguments.largest)
    if arguments.plot is not None:
        from smmd_lightning.report.document import write_document
        from smmd_lightning.report.loss_page import loss_page

        try:
            print(f"\n{write_document(arguments.plot, loss_page(vocabulary, arguments.tokenizer, arguments.target))}")
        except (OSError, ValueError) as error:
            print(f"smmd-vocab: {error}", file=sys.stderr)
            return 1
    return 0


def facts_of_vocabulary(
    tokenizer: PreTrainedTokenizerBase, vocabulary: NumericVocabulary, largest: float
) -> list[tuple[str, str]]:
    """Facts on a vocabulary, as (name, text) rows.

    Args:
        tokenizer: The tokenizer that the vocabulary was taken from.
        vocabulary: What was taken.
        largest: The largest value that was admitted.
    """
    spaced = int(vocabulary.begins_number.sum())
    everything = NumericVocabulary.from_tokenizer(tokenizer, largest=float("inf"), leading_zeros=True)
    taken = set(vocabulary.token_ids.tolist())
    left_out = [
        (surface, value)
        for token_id, surface, value in zip(
            everything.token_ids.tolist(), everything.surfaces, everything.values.tolist(), strict=True
        )
        if token_id not in taken and value <= largest
    ]
    digits = [surface.strip() for surface, _ in left_out]
    zeros = [text for text in digits if text != "0" and text.startswith("0")]
    examples = ", ".join(f'"{text}"' for text in sorted(set(zeros), key=lambda text: (len(text), text))[:3])
    some = f" ({examples}, …)" if zeros else ""
    above = int((everything.values > largest).sum())
    return [
        ("numeric tokens", str(len(vocabulary))),
        ("values", _range(vocabulary)),
        ("written", f"{len(vocabulary) - spaced} bare, {spaced} with a leading space"),
        (
            "left out",
            f"{len(zeros)} with leading zeros{some}, {above} above {largest:g}",
        ),
    ]


def split(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[list[int], list[str]]:
    """Token ids of a text and the entries of the table they stand for, special tokens left out."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    return ids, list(tokenizer.convert_ids_to_tokens(ids))


def _range(vocabulary: NumericVocabulary) -> str:
    values = vocabulary.values.unique()
    low, high = values[0].item(), values[-1].item()
    whole = values == values.round()
    if not whole.all():
        return f"{len(values)} from {low:g} to {high:g}, {int((~whole).sum())} of them decimals"
    missing = int(high - low) + 1 - len(values)
    gaps = f", {missing} missing between" if missing else ""
    return f"{'every integer' if not missing else 'integers'} from {low:g} to {high:g}{gaps}"


def _print_report(tokenizer: PreTrainedTokenizerBase, vocabulary: NumericVocabulary, largest: float) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 3))
    for name, fact in facts_of_vocabulary(tokenizer, vocabulary, largest):
        facts.add_row(Text(name, style="bold"), Text(fact))
    splits = Table("text", "tokens", "of them numeric", box=None, padding=(0, 4, 0, 0), header_style="bold")
    for text in SAMPLES:
        ids, pieces = split(tokenizer, text)
        numeric = vocabulary.is_numeric(torch.tensor(ids, dtype=torch.int64)).tolist()
        shown = Text(" | ").join(Text(p, style="green" if n else "") for p, n in zip(pieces, numeric, strict=True))
        splits.add_row(Text(f'"{text}"'), shown, str(sum(numeric)))
    console = Console()
    console.print(facts)
    console.print()
    console.print(splits)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smmd-vocab",
        description="Show which tokens of a tokenizer are numbers, and how numbers are split.",
    )
    parser.add_argument(
        "tokenizer", metavar="NAME_OR_FOLDER", help="Hugging Face name, folder, GGUF file, or tiny:NAME"
    )
    parser.add_argument("--revision", default="main", help="branch, tag or commit on the hub (default: main)")
    parser.add_argument("--largest", type=float, default=999, help="leave larger numbers out (default: 999)")
    parser.add_argument("--single-digits", action="store_true", help="take 0 to 9 only")
    parser.add_argument("--leading-zeros", action="store_true", help='take "007" as well')
    parser.add_argument("--decimals", action="store_true", help='take "3.14" as well')
    parser.add_argument("--plot", metavar="FILE.html", help="write a page on what the losses do with these numbers")
    parser.add_argument("--target", type=float, help="true number of the plotted losses (default: the middle one)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
