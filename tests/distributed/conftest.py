"""Lets the tests of this folder import the helpers beside them, and starts their processes once for all of them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory, worker_id):
    """What became of each scenario on two processes: "passed" or a traceback; run once, whichever worker asks first."""
    from filelock import FileLock
    from launching import run
    from scenarios import SCENARIOS

    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "two_processes"
    folder.mkdir(exist_ok=True)
    file = folder / "outcomes.json"
    with FileLock(f"{folder}.lock"):
        if not file.exists():
            names = list(SCENARIOS)
            log = run(2, ["scenarios.py", str(folder), *names], timeout=300)
            found = json.loads((folder / "found.json").read_text()) if (folder / "found.json").exists() else {}
            file.write_text(json.dumps({name: found.get(name, f"never finished:\n{log[-6000:]}") for name in names}))
    return json.loads(file.read_text())


@pytest.fixture(scope="session")
def worker_id(request):
    """Name of the xdist worker; "master" without xdist."""
    return getattr(request.config, "workerinput", {}).get("workerid", "master")
