"""One self-contained HTML page about a run: is it learning, where is it wrong, what was it.

Unusual: nothing but the files of the run's folder is read, each of them may be missing, and everything a model or
a data set wrote is treated as hostile text. The page loads nothing, by its own content security policy.

Names are loaded when they are first used: a training run that writes no page does not load what draws one.

One real example::

    $ smmd-report runs/quickstart
    runs/quickstart/report.html
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smmd_lightning.report.page import render_page, write_report
    from smmd_lightning.report.run import Run, read_run

__all__ = ["Run", "read_run", "render_page", "write_report"]

_HOME = {"Run": "run", "read_run": "run", "render_page": "page", "write_report": "page"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
