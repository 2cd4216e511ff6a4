"""Time spans in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Writes a time span.

    >>> duration(3723)
    '1 h 2 min'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
