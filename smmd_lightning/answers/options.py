"""Answers to multiple-choice questions: the letter of an option, however it is dressed.

One real example::

    >>> [option_letter(text) for text in ("(C)", "C) 17", "Option c.", "Carbon", "A red bar")]
    ['C', 'C', 'C', None, None]
"""

from __future__ import annotations

import re

_LETTER = re.compile(r"[\s*_`\"'$]{0,8}(?:(?i:option|choice)\s)?(\(?)([A-Za-z])(\)?)([).:,]?)[*_`\"'$]{0,4}(?=\s|\Z)")


def option_letter(text: str) -> str | None:
    """Returns the letter that a text names as its option, in capitals; None where it names none.

    The letter stands alone, in brackets, or before a bracket, point or colon and the option's own words.
    """
    found = _LETTER.match(text)
    if found is None:
        return None
    alone = not text[found.end() :].strip(" \t\r\n.*_`\"'$")
    dressed = found[3] or found[4]
    return found[2].upper() if (alone or dressed) and (bool(found[1]) <= bool(found[3])) else None
