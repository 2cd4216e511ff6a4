"""Lets the tests of this folder import the helpers beside them, and starts their processes once for all of them."""

import json
import re
import signal
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# What ends a process when a library's native code crashes or aborts; no Python error does, nor do these tests.
CRASHES = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, request):
    """A folder that all xdist workers of this test session see."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if not hasattr(request.config, "workerinput") else folder.parent) / "distributed"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def outcomes(shared_folder):
    """What became of each scenario on two processes: seconds, or its output; run once, whichever worker asks first.

    All run in one process group, one after the other; behind one that fails the rest starts anew. One in which a
    process crashed below Python, as gloo's threads have been seen to do once in hundreds of runs, gets a second try.
    """
    from filelock import FileLock
    from launching import run
    from scenarios import SCENARIOS

    file = shared_folder / "outcomes.json"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            found, left, again = {}, list(SCENARIOS), set()
            while left:
                log = run(2, ["scenarios.py", str(shared_folder), *left], timeout=480)
                passed = [name for name in left if (shared_folder / name / "passed.json").exists()]
                found |= {name: json.loads((shared_folder / name / "passed.json").read_text()) for name in passed}
                left = [name for name in left if name not in passed]
                if left and crashed(log) and left[0] not in again:
                    again.add(left[0])
                    warnings.warn(f"{left[0]} runs once more, as a process crashed:\n{log[-8000:]}", stacklevel=1)
                elif left:
                    found[left.pop(0)] = log[-8000:]
            file.write_text(json.dumps(found))
    return json.loads(file.read_text())


def crashed(log):
    """Whether a process that `launching.run` has waited for was ended by a crash."""
    return any(int(code) in CRASHES for code in re.findall(r"^process \d+ ended with (-?\d+)$", log, re.M))
