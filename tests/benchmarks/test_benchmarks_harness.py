"""The harness with variants that import nothing heavy: children, medians, peaks, files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = '''"""Two ways to hold memory.

More words.
"""
from benchmarks.harness import faster, gib, run, span, table

def small(case):
    with open(case["log"], "a") as log:
        log.write("s")
    return {"seconds": 0.5, "cpu": 0.25, "value": case["value"]}

def large(case):
    held = bytearray(200 << 20)
    with open(case["log"], "a") as log:
        log.write("l")
    return {"seconds": 2.0 + (len(open(case["log"]).read()) == 2) * 9, "cpu": 1.0, "value": case["value"] + case["off"]}

def cases(arguments):
    return [{"log": arguments.log, "value": 3, "off": arguments.off}]

def render(finished):
    mine, theirs = finished[0]["small"], finished[0]["large"]
    return table(["a", "b"], [[faster(mine, theirs), span(mine)], [gib(theirs["peak"]), theirs["median"]]])

def check(found):
    if found["small"]["value"] != found["large"]["value"]:
        raise RuntimeError("they differ")

def options(parser):
    parser.add_argument("--log")
    parser.add_argument("--off", type=int, default=0)

if __name__ == "__main__":
    run("memory", __doc__, {"small": small, "large": large}, cases, render, options, check)
'''


def launch(folder, *flags):
    (folder / "bench.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "bench.py"), "--out", str(folder), "--log", str(folder / "log"), *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})


def test_variants_alternate_in_fresh_processes_and_medians_are_kept(tmp_path):
    done = launch(tmp_path, "--runs", "3")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text() == "sllssl"
    found = json.loads((tmp_path / "memory.json").read_text())
    (case,) = found["cases"]
    assert case["large"]["all_seconds"] == [11.0, 2.0, 2.0]
    assert (case["large"]["median"], case["large"]["most"]) == (2.0, 11.0)
    assert case["large"]["peak"] - case["small"]["peak"] > 150 << 20, "the peak is each process's own"
    text = (tmp_path / "memory.md").read_text()
    assert text.startswith("# Two ways to hold memory.\n")
    assert "Median of 3 runs" in text
    assert "| 4.00 x (processor 4.00 x) | 0.5 s (0.5–0.5) |" in text
    assert "Python" in found["versions"]
    assert "cores" in found["hardware"]


def test_variants_that_disagree_give_no_result(tmp_path):
    done = launch(tmp_path, "--toy", "--off", "1")
    assert done.returncode
    assert "they differ" in done.stderr
    assert not (tmp_path / "memory.md").exists()


@pytest.mark.parametrize("missing", ["--child"])
def test_a_child_that_fails_says_why(tmp_path, missing):
    (tmp_path / "log").mkdir()  # a folder cannot be written to
    done = launch(tmp_path, "--toy")
    assert done.returncode
    assert "small failed on" in done.stderr
    assert "IsADirectoryError" in done.stderr
