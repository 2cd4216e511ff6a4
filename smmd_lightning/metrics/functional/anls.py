"""ANLS: how alike two texts are, by edit distance (Biten et al. 2019, arXiv 1905.13648).

Unusual: as the `anls` package computes it, which published scripts use: just at the threshold a text counts nothing.
"""

from __future__ import annotations

MOST_LETTERS = 2000
"""Letters of a text that are compared; the distance takes time in the product of both lengths."""


def edit_distance(first: str, second: str) -> int:
    """Returns the least number of letters to insert, delete or replace (Levenshtein 1966).

    >>> edit_distance("kitten", "sitting")
    3
    """
    before = list(range(len(second) + 1))
    for row, letter in enumerate(first, start=1):
        here = [row]
        for column, other in enumerate(second, start=1):
            here.append(min(before[column] + 1, here[-1] + 1, before[column - 1] + (letter != other)))
        before = here
    return before[-1]


def anls(prediction: str, target: str, threshold: float = 0.5) -> float:
    """Returns 1 - edit distance / longer length, and 0 where that share of the distance reaches the threshold.

    Case and spacing do not count.

    >>> anls("Untied  Kingdom", "united kingdom"), anls("ab", "ac"), anls("", "")
    (0.8571428571428572, 0.0, 1.0)
    """
    said, truth = (" ".join(text.strip().lower().split())[:MOST_LETTERS] for text in (prediction, target))
    longer = max(len(said.upper()), len(truth.upper()))
    if not longer:
        return 1.0
    if abs(len(said) - len(truth)) >= threshold * longer:  # at least that many letters must be inserted
        return 0.0
    share = edit_distance(said, truth) / longer
    return 1 - share if share < threshold else 0.0
