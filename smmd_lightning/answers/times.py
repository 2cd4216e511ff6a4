"""Text -> time of day, as a person who reads a clock would write it: digits, JSON or words.

Unusual: what cannot be ("25:61", "3:75") is no time. "3:05" has no second rather than second 0, so that a
metric can tell whether seconds were asked for. Hours run 0-23; a dial cannot tell 3:05 from 15:05, which is
for metrics to decide.

One real example::

    >>> [str(time) for time in find_times("half past 12, quarter to 1, 3:05 PM, ten thirty, 03:05:30, noon")]
    ['12:30', '12:45', '15:05', '10:30', '03:05:30', '12:00']
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from smmd_lightning.answers.characters import plain_text
from smmd_lightning.answers.marks import AnswerRule, choose

_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty"]
_WORDS = {word: number for number, word in enumerate(_ONES + _TEENS, start=1)}
_WORDS |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_WORDS |= {"half": 30, "quarter": 15, "noon": 12, "midday": 12, "midnight": 0, "oh": 0, "o": 0}

_HOUR_WORD = rf"(?:{'|'.join(_TEENS[:3] + _ONES)})"
_MINUTE_WORD = rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(_ONES)}))?|{'|'.join(_TEENS)})"
_SMALL_WORD = rf"(?:{_MINUTE_WORD}|{'|'.join(_ONES)})"
_HALF_DAY = r"\s?(?P<{0}_half>[ap])\.?\s?m\b\.?"

_NEXT_KEY = r"""["']?\s?[,;]?\s{0,9}["']?"""


def _entry(names: str, group: str) -> str:
    return rf"""(?:{names})["']?\s?[:=]\s?["']?(?P<{group}>\d{{1,2}})\b"""


_HOUR, _MINUTE, _SECOND = r"hours?|hrs?|h", r"minutes?|mins?|m", r"seconds?|secs?|s"
_FORMS = {
    # {"hour": 3, "minute": 5, "second": 30}
    "json": rf"""\b{_entry(_HOUR, "json_h")}{_NEXT_KEY}{_entry(_MINUTE, "json_m")}
        (?:{_NEXT_KEY}{_entry(_SECOND, "json_s")})?""",
    # {"second": 30, "minute": 5, "hour": 3}; keys have no order
    "turned": rf"""\b(?:{_entry(_SECOND, "turned_s")}{_NEXT_KEY})?{_entry(_MINUTE, "turned_m")}
        {_NEXT_KEY}{_entry(_HOUR, "turned_h")}(?:{_NEXT_KEY}{_entry(_SECOND, "turned_t")})?""",
    # 3 hours, 5 minutes and 30 seconds
    "spoken": r"""(?<![\d.:])(?P<spoken_h>\d{1,2})\s?(?:hours?|hrs?|h)\b[\s,]{0,2}(?:and\s)?
        (?P<spoken_m>\d{1,2})\s?(?:minutes?|mins?|m)\b
        (?:[\s,]{0,2}(?:and\s)?(?P<spoken_s>\d{1,2})\s?(?:seconds?|secs?|s)\b)?""",
    # 2021-05-12T03:05:30+02:00; the zone is no time of its own
    "iso": r"""(?<=\d\d-\d\d[T\s])(?P<iso_h>\d{2}):(?P<iso_m>\d{2})(?::(?P<iso_s>\d{2})(?:[.,]\d{1,9})?)?
        (?:\s?(?:Z\b|[-+]\d{2}(?::?\d{2})?))?(?![\d:]|\.\d)""",
    # 3:05, 03:05:30 PM, 3h05, 3 h 05, 3.05 pm, 03:05+02:00
    "digital": r"""(?<![\d.:])(?P<digital_h>\d{1,2})(?:(?::|\s:\s)(?P<digital_m>\d{1,2})
        (?:(?::|\s:\s)(?P<digital_s>\d{1,2})(?:\.\d{1,6})?)?(?:\+\d{2}:\d{2})?
        |(?:\.|\s?h\s?)(?P<digital_n>\d{2}))(?![\d:]|\.\d)(?:"""
    + _HALF_DAY.format("digital")
    + ")?",
    # five past three, 25 min to 8, half-past noon; not the dial's numbers "from 1 to 12"
    "past": rf"""(?<!from\s)\b(?P<past_m>\d{{1,2}}|half|quarter|{_SMALL_WORD})(?:[-\s](?:minutes?|mins?))?\.?
        [-\s](?P<past_way>past|after|to|before|till|of)
        [-\s](?P<past_h>\d{{1,2}}(?!:)|{_HOUR_WORD}|noon|midday|midnight)\b(?:\s?o\s?'?\s?clock\b)?(?:"""
    + _HALF_DAY.format("past")
    + ")?",
    # 3 o'clock, three o'clock, 3 PM
    "clock": rf"""(?<![\w.:])(?P<clock_h>\d{{1,2}}|{_HOUR_WORD})
        (?:\s?o\s?'?\s?clock\b(?:{_HALF_DAY.format("clock")})?|"""
    + _HALF_DAY.format("sharp")
    + ")",
    # ten thirty, three oh five
    "words": rf"""\b(?P<words_h>{_HOUR_WORD})[-\s]
        (?P<words_m>{_MINUTE_WORD}|(?:oh|o)[-\s](?:{"|".join(_ONES)}))\b(?:"""
    + _HALF_DAY.format("words")
    + ")?",
    "named": r"\b(?P<named_h>noon|midday|midnight)\b",
}
_TIME = re.compile(
    "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()), re.VERBOSE | re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True)
class TimeOfDay:
    """A time of day.

    Attributes:
        hour: 0-23, as written: "3:05" is hour 3, "3:05 PM" hour 15.
        minute: 0-59.
        second: 0-59, or None where only hour and minute are told.
    """

    hour: int
    minute: int
    second: int | None = None

    @property
    def seconds(self) -> int:
        """Seconds since midnight; an untold second counts as 0."""
        return 3600 * self.hour + 60 * self.minute + (self.second or 0)

    def __str__(self) -> str:
        """HH:MM, or HH:MM:SS where the second is told."""
        seconds = "" if self.second is None else f":{self.second:02d}"
        return f"{self.hour:02d}:{self.minute:02d}{seconds}"


@dataclass(frozen=True)
class _FoundTime:
    time: TimeOfDay
    start: int


def find_times(text: str) -> list[TimeOfDay]:
    """Returns all times of day in `text`, in order; impossible ones are left out."""
    return [found.time for found in _find(plain_text(text))]


def parse_time(text: str, rule: AnswerRule = "marked") -> TimeOfDay | None:
    """Returns the time that `text` gives as its answer, or None.

    Args:
        text: Whatever a model wrote.
        rule: Which of several times counts: "marked" takes the first one after the last answer mark that is
            followed by a time ("the answer is"), and the last of all without such a mark; "last" and "first"
            ignore marks.

    >>> parse_time('{"hour": 3, "minute": 5}'), parse_time("25:61")
    (TimeOfDay(hour=3, minute=5, second=None), None)
    """
    plain = plain_text(text)
    found = choose(_find(plain), plain, rule)
    return None if found is None else found.time


def _find(text: str) -> list[_FoundTime]:
    read = ((_read(match), match.start()) for match in _TIME.finditer(text.replace("\u00a0", " ")))
    return [_FoundTime(time, start) for time, start in read if time is not None]


def _read(match: re.Match[str]) -> TimeOfDay | None:
    form = next(name for name in _FORMS if match[name] is not None)
    groups = {name.removeprefix(f"{form}_"): part.lower() for name, part in match.groupdict().items() if part}
    hour, minute = _value(groups["h"]), _value(groups.get("m") or groups.get("n") or "0")
    told = groups.get("s") or groups.get("t")
    second = _value(told) if told else None
    half = groups.get("half") or groups.get("sharp_half")
    if form == "past":
        # "5 of 10" is a share; only "quarter of three" is the American quarter to three.
        if not 0 < minute < 60 or (groups["way"] == "of" and groups["m"] != "quarter"):
            return None
        if groups["way"] not in ("past", "after"):
            hour, minute = {0: 23, 1: 12}.get(hour, hour - 1), 60 - minute
    if (hour, minute, second or 0) == (24, 0, 0):
        hour = 0
    if hour > 23 or minute > 59 or (second or 0) > 59:
        return None
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return TimeOfDay(hour, minute, second)


def _value(text: str) -> int:
    if text.isdigit():
        return int(text)
    return sum(_WORDS[word] for word in re.split(r"[-\s]", text))
