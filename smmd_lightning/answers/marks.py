r"""Where an answer stands in a text: answer marks, and which of several candidates counts.

One real example, the end of a GSM8K answer and what a chat model makes of it::

    >>> answer_text("48+24 = 72 clips.\n#### 72"), answer_text("So the answer is: 72 clips. Well done!")
    ('72', '72 clips')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from smmd_lightning.answers.thoughts import without_thoughts

AnswerRule = Literal["marked", "last", "first"]
"""Which of several candidates counts: after the last answer mark (else the last), the last, the first."""

_MARK = re.compile(
    r"""\#{4}
    | \\boxed\s{0,4}\{
    | <answer>
    | \banswer\b["*_ ]{0,4}(?:\([^()\n]{0,40}\)\s?)?
      (?:(?:is|was|equals|would\sbe|will\sbe|comes\sto|must\sbe)\b["*_ ]{0,4}(?:\s?[:=])?|\s?[:=])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TEXT = re.compile(r"\S.*")
_LABEL = re.compile(r"[\s*_$\"']{0,8}\(?\d{1,2}\)[\s*_]{1,4}(?=\S)", re.ASCII)
_SENTENCE_END = re.compile(r"[.!?](?=[\s*_\"')]|\Z)|</answer>", re.IGNORECASE)


class Found(Protocol):
    """Something found in a text, from `start` to `end`."""

    @property
    def start(self) -> int:
        """Index of its first character."""
        ...


F = TypeVar("F", bound=Found)


def marked_spans(text: str) -> list[tuple[int, int]]:
    r"""Returns the spans where answers are announced, in order and disjoint.

    A span goes from its mark to the end of that sentence (of the box for a `\boxed{}`), and never past the
    next mark: so all spans together are no longer than the text.
    """
    marks = list(_MARK.finditer(text))
    spans = []
    for number, mark in enumerate(marks):
        limit = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        line = _TEXT.search(text, mark.end(), limit)
        if line is None:
            continue
        if mark[0].endswith("{"):
            spans.append((mark.end(), _closing(text, mark.end(), limit)))
            continue
        sentence = _SENTENCE_END.search(text, line.start(), line.end())
        spans.append((line.start(), sentence.start() if sentence else line.end()))
    return spans


def answer_text(text: str) -> str:
    """Returns what stands after the last answer mark, up to the end of its sentence; without a mark all."""
    text = without_thoughts(text)
    spans = marked_spans(text)
    start, end = spans[-1] if spans else (0, len(text))
    return text[start:end].strip(' \t\r\n*_$"')


def choose(found: Sequence[F], text: str, rule: AnswerRule) -> F | None:
    """Returns the candidate that counts.

    Args:
        found: Candidates, in the order of their position in `text`.
        text: The text they were found in.
        rule: "marked", "last" or "first". After a mark the first candidate counts, or the one after the last
            "=" of its sentence ("the answer is 5 * 3 = 15"). The number of an option ("the answer is (3) 17") counts
            only where no other candidate follows it.

    Raises:
        ValueError: There is no such rule.
    """
    if rule not in ("marked", "last", "first"):
        raise ValueError(f'rule must be "marked", "last" or "first", got {rule!r}.')
    if not found:
        return None
    if rule == "first":
        return found[0]
    if rule == "marked":
        position = len(found)
        for start, end in reversed(marked_spans(text)):
            upper = position
            while position and found[position - 1].start >= start:
                position -= 1
            inside = [candidate for candidate in found[position:upper] if candidate.start < end]
            if inside:
                label = _LABEL.match(text, start, end)
                inside = [found for found in inside if label is None or found.start >= label.end()] or inside
                equals = text.rfind("=", start, end)
                return next((candidate for candidate in inside if candidate.start > equals), inside[0])
    return found[-1]


def _closing(text: str, start: int, limit: int) -> int:
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:limit]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return start + brace.start()
    return limit
