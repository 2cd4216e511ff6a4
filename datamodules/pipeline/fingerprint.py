"""Whether data are the same as when a checkpoint was written, told from a few of their samples."""

from __future__ import annotations

import hashlib

from smmd_lightning.types import BadSample, SampleKey, Source

SAMPLES = 16
"""How many samples are looked at, spread evenly: reading all would take as long as an epoch."""


def fingerprint(source: Source, size: int) -> str:
    """Returns a short hash of the questions and answers of some samples, spread over the split.

    Another table, another task, other settings of drawn samples change it; a change of a few rows may not.

    Args:
        source: The split's samples.
        size: How many of them are in use.
    """
    digest = hashlib.sha256()
    for index in sorted({number * (size - 1) // max(SAMPLES - 1, 1) for number in range(SAMPLES)}):
        try:
            example = source.example(SampleKey(0, index))
            texts = [example.prompt, example.answer]
        except BadSample:
            texts = ["a bad sample"]
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]
