"""What the name of a metric tells.

One real example::

    >>> [larger_is_better(name) for name in ("exact_match", "mean_error_minutes", "parse_failures", "clock/ce")]
    [True, False, False, False]
"""

from __future__ import annotations

SMALLER_IS_BETTER = ("error", "failures", "loss", "ce", "numeric")
"""Words in the names of metrics of which less is better."""


def larger_is_better(metric: str) -> bool:
    """Whether more of a metric is better, read from its name."""
    words = metric.replace("/", "_").split("_")
    return not any(word in SMALLER_IS_BETTER for word in words)
