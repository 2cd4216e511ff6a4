"""One self-contained HTML page about a run: is it learning, where is it wrong, what was it.

Unusual: nothing but the files of the run's folder is read, each of them may be missing, and everything a model or
a data set wrote is treated as hostile text. The page loads nothing, by its own content security policy.

One real example::

    $ smmd-report runs/quickstart
    runs/quickstart/report.html
"""

from smmd_lightning.report.page import render_page, write_report
from smmd_lightning.report.run import Run, read_run

__all__ = ["Run", "read_run", "render_page", "write_report"]
