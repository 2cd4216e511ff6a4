"""Networks of two machines on one: namespaces that only a pair of virtual cards joins."""

import contextlib
import subprocess
from collections.abc import Iterator

ADDRESSES = ("10.203.0.1", "10.203.0.2")
CARD = "smmd_node"
"""Name of the card in each, and of none elsewhere: who asks for it is in one of them."""


@contextlib.contextmanager
def two_networks() -> Iterator[list[str]]:
    """Yields the files of two network namespaces.

    Each lives as long as a process that waits for the end of this one's pipe: nothing stays behind, however tests end.

    Raises:
        PermissionError: This machine does not allow it; says what failed.
    """
    with contextlib.ExitStack() as stack:
        keepers = [
            stack.enter_context(
                subprocess.Popen(
                    ["unshare", "--net", "sh", "-c", "echo; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            for _ in ADDRESSES
        ]
        if any(keeper.stdout.readline() != b"\n" for keeper in keepers):
            raise PermissionError("unshare --net is refused")
        first, second = (str(keeper.pid) for keeper in keepers)
        _ip(first, "link", "add", CARD, "type", "veth", "peer", "name", CARD, "netns", second)
        for keeper, address in zip((first, second), ADDRESSES, strict=True):
            _ip(keeper, "address", "add", f"{address}/24", "dev", CARD)
            _ip(keeper, "link", "set", CARD, "up")
            _ip(keeper, "link", "set", "lo", "up")
        yield [f"/proc/{keeper.pid}/ns/net" for keeper in keepers]


def _ip(keeper: str, *arguments: str) -> None:
    command = ["nsenter", "--net", "--target", keeper, "ip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PermissionError(f"{' '.join(command)}: {done.stderr.strip()}")
