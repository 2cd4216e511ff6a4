r"""Unicode text -> the plain characters that the parsers know.

Unusual: no NFKC, which would turn "x²" into "x2" and "½" into three characters; raised digits become a power ("x^2").
Digits of any script become ASCII, the many minus signs one hyphen, narrow and no-break spaces one no-break space (these
group thousands).

One real example::

    >>> plain_text("−７\u202f000 {,}")
    '-7\xa0000 ,'
"""

from __future__ import annotations

import re
import unicodedata

from smmd_lightning.answers.thoughts import without_thoughts

_SAME = {
    **dict.fromkeys("‐‑‒–—−﹣－", "-"),
    **dict.fromkeys("\u2007\u2009\u202f\u00a0", "\u00a0"),
    **dict.fromkeys("‘’ʼ′＇", "'"),
    **dict.fromkeys("“”″", '"'),
    **dict(zip("．，％＄：／＋＝（）", ".,%$:/+=()", strict=True)),
    "⁄": "/",
    "∕": "/",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "٫": ".",
    "٬": ",",
    "،": ",",
    "٪": "%",
    "\u200b": "",
    "\ufeff": "",
}
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_OUTSIDE_ASCII = re.compile(rf"[{''.join(_RAISED)}]+|[^\x00-\x7f]")
_LATEX = re.compile(r"\{,\}|,\\!|\\([$%])|\\(times|cdot)\b|\\[ ,;!]|[\t\f\v]")
_SPACES = re.compile(r"\s+")
_AROUND_SIGNS = re.compile(r" ?([-/,:+]) ?")


def plain_text(text: str) -> str:
    """Returns `text` with digits, signs, spaces, quotes and LaTeX thousands written in one way each; no reasoning."""
    return _LATEX.sub(_from_latex, _OUTSIDE_ASCII.sub(_from_unicode, without_thoughts(text)))


def same_text(prediction: str, target: str) -> bool:
    """Whether two answers are the same words: case, quotes, spacing and a full stop at the end do not matter.

    Punctuation alone ("." or "$") is the same only as itself.

    >>> same_text(" yes. ", "Yes"), same_text("May ‘21", "May '21"), same_text("65", "65+")
    (True, True, False)
    """
    said, truth = _bare(prediction), _bare(target)
    return said == truth and (bool(said) or plain_text(prediction).strip() == plain_text(target).strip())


def _bare(text: str) -> str:
    text = _SPACES.sub(" ", plain_text(text)).casefold().strip(" \"'*`$")
    return _AROUND_SIGNS.sub(r"\1", text.rstrip(".!")).strip(" \"'*`")


def _from_unicode(match: re.Match[str]) -> str:
    character = match[0]
    if character[0] in _RAISED:
        return "^" + "".join(_RAISED[sign] for sign in character)
    if character in _SAME:
        return _SAME[character]
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


def _from_latex(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    if match[2]:
        return "*"
    return "," if match[0][0] in "{," else " "
