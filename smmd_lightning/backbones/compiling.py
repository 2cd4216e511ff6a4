"""What `compile_blocks` needs and where it is left out."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager

import torch


def check_compiler() -> None:
    """Checks that `torch.compile` can build its kernels on this machine.

    Raises:
        ValueError: There is neither a GPU nor a C++ compiler.
    """
    compiler = os.environ.get("CXX", "g++")
    if not torch.cuda.is_available() and not any(shutil.which(name) for name in (compiler, "g++", "clang++")):
        raise ValueError(
            f"compile_blocks: true needs a C++ compiler on a machine without a GPU, and {compiler!r} is not there. "
            "Install g++, name another by the environment variable CXX, or set compile_blocks: false."
        )


def uncompiled() -> AbstractContextManager[None]:
    """Runs compiled modules as they are written: in generation each length of the cache would be compiled again."""
    return torch.compiler.set_stance("force_eager")
