"""Pairs of a right answer and a mistake that a model is likely to make, for DPO and its relatives.

Unusual: the mistakes are those of the task. On a clock: hands swapped, the hour off by one, a neighbouring minute, five
minutes off. On an instrument: a neighbouring tick, half a scale, a misplaced decimal point. Of a number: one digit off,
two digits swapped, one too few or too many.

One real example::

    >>> [mistake for _, mistake in near_misses(NumericExample("a", "", "03:05", meta={"task": "clock"}))][:3]
    ['01:15', '04:05', '02:05']
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from smmd_lightning.answers import parse_number, parse_time
from smmd_lightning.types import NumericExample, SampleKey, Source


def near_misses(example: NumericExample) -> list[tuple[str, str]]:
    """Returns the likely mistakes of one example, as pairs of a kind and an answer written like the right one.

    Args:
        example: Its `meta["task"]` says which mistakes: "clock", "instrument", or those of plain numbers.

    Raises:
        ValueError: The right answer is neither a number nor a time.
    """
    if example.meta.get("task") == "clock":
        found = list(_clock(example))
    elif example.meta.get("task") == "instrument":
        found = list(_instrument(example))
    else:
        found = list(_number(example))
    kinds: dict[str, str] = {}
    for kind, text in found:
        if text != example.answer:
            kinds.setdefault(text, kind)
    return [(kind, text) for text, kind in kinds.items()]


class NearMissPairs:
    """Preference rows over any source of examples.

    Args:
        source: Where the examples come from.
        seed: Which of an example's mistakes is taken depends on it and the example's place.
        kinds: Only these kinds of mistakes; None for all.

    Raises:
        ValueError: `seed` is negative.
    """

    def __init__(self, source: Source, seed: int = 0, kinds: Sequence[str] | None = None) -> None:
        if seed < 0:
            raise ValueError(f"seed must be at least 0, got {seed}.")
        self.source, self.seed = source, seed
        self.kinds = None if kinds is None else set(kinds)

    def __len__(self) -> int:
        """Rows: one per example."""
        return len(self.source)

    def row(self, index: int, epoch: int = 0) -> dict[str, Any]:
        """Returns one row: `prompt`, `chosen`, `rejected` (conversations), `images`, `mistake`.

        Raises:
            ValueError: The example has none of the kinds of mistakes that were asked for.
        """
        example = self.source.example(SampleKey(epoch, index))
        found = [pair for pair in near_misses(example) if self.kinds is None or pair[0] in self.kinds]
        if not found:
            raise ValueError(f"example {example.id!r} has no mistake of the kinds {sorted(self.kinds or ())}.")
        kind, text = found[int(np.random.default_rng([self.seed, epoch, index]).integers(len(found)))]
        return {
            "prompt": [{"role": "user", "content": example.prompt}],
            "chosen": [{"role": "assistant", "content": example.answer}],
            "rejected": [{"role": "assistant", "content": text}],
            "images": list(example.images),
            "mistake": kind,
        }

    def rows(self, number: int | None = None) -> list[dict[str, Any]]:
        """Returns the first rows; all for None. Rows without pictures have no `images`."""
        made = [self.row(index) for index in range(len(self) if number is None else min(number, len(self)))]
        if not any(row["images"] for row in made):
            for row in made:
                del row["images"]
        return made


def _clock(example: NumericExample) -> Iterator[tuple[str, str]]:
    time = parse_time(example.answer)
    if time is None:
        raise ValueError(f"example {example.id!r}: the right answer of a clock must be a time, got {example.answer!r}.")
    seconds = "" if time.second is None else f":{time.second:02d}"

    def written(hour: int, minute: int) -> str:
        return f"{(hour - 1) % 12 + 1:02d}:{minute % 60:02d}{seconds}"

    # Each hand read as the other: the minute hand's place gives the hour, the hour hand's place the minute.
    swapped = round((time.hour % 12 + time.minute / 60) * 5) % 60
    yield "hands swapped", written(time.minute // 5, swapped)
    yield "hour off", written(time.hour + 1, time.minute)
    yield "hour off", written(time.hour - 1, time.minute)
    for step in (1, -1, 5, -5):
        total = time.hour * 60 + time.minute + step
        yield "minutes off", written(total // 60, total)


def _instrument(example: NumericExample) -> Iterator[tuple[str, str]]:
    meta = example.meta
    value, tick = Decimal(str(meta["value"])), Decimal(str(meta["tick"]))
    low, high = (Decimal(str(end)) for end in meta["scale"])
    unit = str(meta.get("unit") or "")
    named = unit and example.answer.endswith(unit)

    def written(number: Decimal) -> str:
        text = f"{number:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{text} {unit}" if named else text

    for step in (1, -1, 5, -5):
        if low <= value + step * tick <= high:
            yield "neighbouring tick" if abs(step) == 1 else "ticks miscounted", written(value + step * tick)
    yield "read from the other end", written(low + high - value)
    yield "wrong scale", written(value * 10)
    yield "wrong scale", written(value / 10)


def _number(example: NumericExample) -> Iterator[tuple[str, str]]:
    number = parse_number(example.answer)
    if number is None:
        raise ValueError(f"example {example.id!r}: the right answer must hold a number, got {example.answer!r}.")
    written = f"{number:f}"
    if written not in example.answer:  # "1,234": written as people group it
        written = f"{number:,f}"
    if written not in example.answer:
        raise ValueError(f"example {example.id!r}: {number} is not written in plain digits in {example.answer!r}.")
    start = example.answer.rindex(written)

    def put(text: str) -> str:
        return example.answer[:start] + text + example.answer[start + len(written) :]

    places = [place for place, letter in enumerate(written) if letter.isdigit()]
    last = Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)))
    for step in (1, -1):
        yield "one off", put(f"{number + step * last:f}")
    for place in places:
        digit = int(written[place])
        yield "digit off", put(written[:place] + str((digit + 1) % 10) + written[place + 1 :])
    for first, second in itertools.pairwise(places):
        letters = list(written)
        letters[first], letters[second] = letters[second], letters[first]
        yield "digits swapped", put("".join(letters))
