"""Starts the processes of a test, on loopback alone, and never lets one outlive its time."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import preloaded

ROOT = Path(__file__).parent.parent.parent
DISTRIBUTED = ROOT / "tests" / "distributed"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without any trace of a launcher, offline, one thread a process."""
    launchers = ("SLURM_", "TORCHELASTIC_", "PET_")
    names = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "PL_GLOBAL_SEED"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(launchers) and k not in names}
    paths = os.pathsep.join([str(DISTRIBUTED), str(Path(__file__).parent), str(ROOT), kept.get("PYTHONPATH", "")])
    return kept | {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": paths,
        **more,
    }


def ranks(world: int) -> list[dict[str, str]]:
    """The variables that torchrun gives each process of one node."""
    port = str(free_port())
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": f"test-{port}",
    }
    return [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)]


def start(command: list[str], log: Path, *, fresh: bool = False, **more: str) -> subprocess.Popen:
    """Starts one Python process in a group of its own, its output in `log`; `fresh` without `preloaded`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *command] if fresh else preloaded.arguments(command),
            env=environment(**more),
            cwd=DISTRIBUTED,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish(processes: list[subprocess.Popen], timeout: float, *, together: bool = True) -> list[int]:
    """Waits for all; kills their whole groups at the deadline or, if `together`, soon after one has failed."""
    deadline = time.monotonic() + timeout
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        if together and any(process.poll() not in (None, 0) for process in processes):
            deadline = min(deadline, time.monotonic() + 10)
        time.sleep(0.1)
    for process in processes:
        stop(process)
    return [process.wait() for process in processes]


def stop(process: subprocess.Popen, number: int = signal.SIGKILL) -> None:
    """Sends a signal to a process and all that it started."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def run(world: int, command: list[str], *, timeout: float, log: Path | None = None, **more: str) -> str:
    """Runs a command on `world` processes as torchrun would; returns their output and a line on how each ended."""
    import tempfile

    log = log or Path(tempfile.mkstemp(suffix=".log")[1])
    codes = finish([start(command, log, **variables, **more) for variables in ranks(world)], timeout)
    ends = "".join(f"\nprocess {rank} ended with {code}" for rank, code in enumerate(codes))
    return log.read_text(errors="replace") + ends
