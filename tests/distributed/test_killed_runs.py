"""Real processes, really killed: the same command is given until the job is done, as a cluster does."""

import contextlib
import itertools
import os
import signal

import pytest
from ends import assert_same_end
from launching import finish, free_port, start
from networks import ADDRESSES, CARD, two_networks
from preloaded import NETWORK, arguments
from sums import command

from smmd_lightning.cli import main

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(900)]


SLURM = {
    "SLURM_JOB_ID": "4242",
    "SLURM_JOB_NAME": "train",
    "SLURM_NTASKS": "1",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_NNODES": "1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_NODELIST": "127.0.0.1",
}


@pytest.fixture
def scontrol(tmp_path):
    """A stand-in for SLURM's command that notes what it is asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/scontrol.txt\n')
    (folder / "scontrol").chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def once(given, log, **variables):
    (code,) = finish([start(given, log, fresh=True, **variables)], 150)
    return code, log.read_text(errors="replace")


def test_one_process_preempted_then_killed_ends_like_one_left_alone(tmp_path, scontrol):
    alone, struck = tmp_path / "alone", tmp_path / "struck"
    main(command(alone, 1, 1, workers=0)[1:])
    given = command(struck, 1, 1, workers=2)
    code, log = once(given, tmp_path / "1.log", STRIKE="3:USR1:0", **SLURM, **scontrol)
    assert code == 0, log[-5000:]
    assert "nothing in" in log  # resuming where nothing is starts
    assert "stopped by a signal after 2 steps" in log
    assert (tmp_path / "scontrol.txt").read_text() == "requeue 4242\n"
    code, log = once(given, tmp_path / "2.log", STRIKE="7:KILL:0", **SLURM, **scontrol)
    assert code == -signal.SIGKILL, log[-5000:]
    assert "resume: going on from" in log
    main(given[1:])
    assert_same_end(struck, alone, 1)
    main(given[1:])  # given once more, there is nothing left to do
    assert_same_end(struck, alone, 1)


def torchrun(given: list[str], node: int, addresses: tuple[str, str], port: int) -> list[str]:
    return [
        *("-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(node)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{addresses[0]}:{port}", "--rdzv-id", f"sums-{port}"),
        *("--rdzv-conf", f"is_host={int(node == 0)},join_timeout=180", "--local-addr", addresses[node]),
        *("--max-restarts", "0", *given),
    ]


def ended(launchers, logs):
    """Exit codes and output of a job's launchers."""
    return finish(launchers, 240), "\n".join(log.read_text(errors="replace") for log in logs)


def job_on_loopback(given, folder, name, **variables):
    """Two nodes' launchers, as one job, each process a fresh one."""
    port, logs = free_port(), [folder / f"{name}.{node}.log" for node in range(2)]
    commands = [torchrun(given, node, ("127.0.0.1", "127.0.0.1"), port) for node in range(2)]
    return ended([start(commands[node], logs[node], fresh=True, **variables) for node in range(2)], logs)


def job_on_two_networks(networks, port, given, folder, name, **variables):
    """Two nodes' launchers, as one job, each in its own network namespace and with no other way to the other."""
    logs = [folder / f"{name}.{node}.log" for node in range(2)]
    commands = [torchrun(["--no-python", *arguments(given)], node, ADDRESSES, port) for node in range(2)]
    launchers = [
        start(commands[node], logs[node], GLOO_SOCKET_IFNAME=CARD, **{NETWORK: networks[node]}, **variables)
        for node in range(2)
    ]
    return ended(launchers, logs)


def assert_loses_a_node_and_goes_on(job, given, folder, alone):
    codes, log = job(given, folder, "1", STRIKE="7:KILL:1")
    assert 0 not in codes, log[-6000:]
    codes, log = job(given, folder, "2")
    assert codes == [0, 0], log[-6000:]
    assert "resume: going on from" in log
    assert_same_end(folder, alone, 2)


@pytest.fixture
def alone(outcomes, shared_folder):
    """What the same command leaves when nothing disturbs it."""
    name = "the_command_line_left_alone"
    assert not isinstance(outcomes[name], str), outcomes[name]
    return shared_folder / name


def test_a_job_on_two_nodes_that_loses_one_ends_like_one_left_alone(tmp_path, alone):
    assert_loses_a_node_and_goes_on(job_on_loopback, command(tmp_path, 1, 2, workers=2), tmp_path, alone)


@pytest.fixture
def networks():
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(two_networks())
        except (PermissionError, FileNotFoundError) as error:
            pytest.skip(f"network namespaces are not allowed here: {error}")
        yield found


def test_a_job_on_two_networks_that_loses_a_node_ends_like_one_left_alone(tmp_path, alone, networks):
    ports = itertools.count(29_500)

    def job(*arguments, **variables):
        return job_on_two_networks(networks, next(ports), *arguments, **variables)

    assert_loses_a_node_and_goes_on(job, command(tmp_path, 1, 2, workers=0), tmp_path, alone)
