"""Starts Python processes without importing torch and Lightning anew in each, which costs seconds.

One server of a test session imports them once; it forks for each command that is given to this file, as it would be to
`python`: a script, `-m MODULE` or `-c CODE`, and arguments. Such a process is a real one, with a process id, an
environment and a process group of its own. Output, signals and exit status pass through the process that asked; when
that one is killed, so is the one it asked for.
"""

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time

ADDRESS = "SMMD_TESTS_PRELOADED"
"""Environment variable: path of the socket of the session's server, named by the process id of the session."""
NETWORK = "SMMD_TESTS_NETWORK"
"""Environment variable of a process to be: the file of the network namespace that it lives in."""
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)
MODULES = (
    "torch.distributed.launcher",
    "torch.distributed.checkpoint.state_dict",
    "torch.distributed.fsdp",
    "lightning.pytorch.cli",
    "transformers.models.llama.modeling_llama",
    "transformers.models.qwen2.modeling_qwen2",
    "peft",
    "tensorboard.summary",
    "smmd_lightning.cli",
    "smmd_lightning.strategies",
    "smmd_lightning.backbones",
    "datamodules",
)


def arguments(command: list[str]) -> list[str]:
    """What starts a command by way of the server, which is started if there is none yet."""
    from filelock import FileLock

    address = os.environ[ADDRESS]
    with FileLock(f"{address}.lock"):
        if not os.path.exists(address):
            with open(f"{address}.log", "ab") as log:
                subprocess.Popen(
                    [sys.executable, __file__, "--serve", address],
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            deadline = time.monotonic() + 300
            while not os.path.exists(address):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"the server of processes did not start; see {address}.log")
                time.sleep(0.05)
    return [sys.executable, "-S", "-E", __file__, *command]


def stop_server() -> None:
    """Ends the session's server, if one was started."""
    with contextlib.suppress(OSError, KeyError):
        _connect(os.environ[ADDRESS]).sendall(b"stop")


def serve(address: str) -> None:
    """Imports, then forks a keeper for every connection, until told to stop or the session is gone."""
    import importlib

    import torch

    torch.set_num_threads(1)
    for name in MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # collections in the forks need not look at, and so copy, what is shared
    threads = len(os.listdir("/proc/self/task"))
    print(f"{threads} thread(s) after importing", flush=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"{address}.new")
    listening.listen(64)
    os.rename(f"{address}.new", address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need nobody to wait for them
    while os.path.exists(address) and os.path.exists(f"/proc/{os.path.basename(address)}"):
        if not select.select([listening], [], [], 60)[0]:
            continue
        connection, _ = listening.accept()
        message, handles, _, _ = socket.recv_fds(connection, 1 << 20, 2)
        if message == b"stop":
            os.unlink(address)
        elif message and os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(connection, json.loads(message), handles)
        connection.close()
        for handle in handles:
            os.close(handle)


def _keep(connection: socket.socket, request: dict, handles: list[int]) -> None:
    """Forks the process that was asked for; ends it with the asker, or tells the asker how it ended."""
    process = os.fork()
    if process == 0:
        _become(connection, request, handles)
    watched = os.pidfd_open(process)
    while True:
        ready = select.select([watched, connection], [], [])[0]
        if watched in ready:
            break
        number = connection.recv(1)
        if number:
            os.kill(process, number[0])
        else:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(process, signal.SIGKILL)
            break
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(str(status).encode())
    os._exit(0)


def _become(connection: socket.socket, request: dict, handles: list[int]) -> None:
    """Turns this fork into what `python COMMAND` would be; the interpreter ends as it would there."""
    os.setsid()
    connection.close()
    os.dup2(handles[0], 1)
    os.dup2(handles[1], 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    if NETWORK in os.environ:
        _enter_network(os.environ[NETWORK])
    sys.path[0:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    command = request["command"]
    if command[0] == "-c":
        sys.argv = ["-c", *command[2:]]
        exec(compile(command[1], "<string>", "exec"), {"__name__": "__main__"})
    elif command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
        runpy.run_path(command[0], run_name="__main__")
    sys.exit()


def _enter_network(path: str) -> None:
    """Moves this process into a network namespace, as `nsenter --net=PATH` does."""
    import ctypes

    with open(path) as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def _connect(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    return connection


def ask(command: list[str]) -> None:
    """Has the server start a command, passes signals on to it, and ends as it ended."""
    connection = _connect(os.environ[ADDRESS])
    for number in FORWARDED:
        signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    request = {"command": command, "environment": dict(os.environ), "folder": os.getcwd()}
    socket.send_fds(connection, [json.dumps(request).encode()], [1, 2])
    answer = connection.recv(16)
    status = int(answer or b"1")
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        ask(sys.argv[1:])
