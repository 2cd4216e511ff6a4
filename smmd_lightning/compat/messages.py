"""Texts of other libraries' messages, matched where nothing but the text tells one case from another."""

from __future__ import annotations

import logging
import warnings


def is_worker_death(error: BaseException) -> bool:
    """Whether a loader's worker process died (torch 2.9 to 2.14: a plain RuntimeError).

    >>> is_worker_death(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."))
    True
    """
    return "DataLoader worker" in str(error)


def is_error_inside_worker(error: BaseException) -> bool:
    """Whether a living worker sent its own error (torch 2.9 to 2.14 put this line before the worker's traceback)."""
    return "in DataLoader worker process" in str(error)


def is_failed_allocation(error: BaseException) -> bool:
    """Whether main memory ran out inside torch (2.9 to 2.14: a plain RuntimeError of the CPU allocator)."""
    return "can't allocate memory" in str(error)


def is_table_without_rows(error: BaseException) -> bool:
    """Whether `datasets` (4.0 to 5.2) found a file without rows, for which it has no error class."""
    return "corresponds to no data" in str(error)


def is_failed_union(error: BaseException) -> bool:
    """Whether jsonargparse (4.40 to 4.53) wraps an error of our own into a list of all the types it tried."""
    return str(error).startswith("Does not validate against any of the Union")


def hide_advertisement() -> None:
    """Keeps a line that recommends another product out of the log (Lightning 2.6)."""
    engine = logging.getLogger("lightning.pytorch.utilities.rank_zero")
    if not engine.filters:
        engine.addFilter(lambda record: "litlogger" not in str(record.msg))


def hide_warnings_of_lightning() -> None:
    """Hides what no user can change: a warning of torch about code of Lightning (2.6 with torch 2.9 and later).

    And Lightning's advice to log with `sync_dist=True` where several processes run: values are reduced before they are
    logged.
    """
    warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated", module="lightning")
    warnings.filterwarnings("ignore", message=".*sync_dist=True")


def hide_warning_of_views() -> None:
    """Hides FSDP2's warning that a forward returned a view (torch 2.12 and later).

    The losses that a backbone returns may be views of each other; nothing here changes them in place.
    """
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")


def hide_warning_of_peft() -> None:
    """Hides that peft (0.18 to 0.21) reads a property of transformers that will be removed."""
    warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
