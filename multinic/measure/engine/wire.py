"""Network namespaces for measurements: two hosts on one plain link, and the network of a guest of the lab."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from multinic.lab.guests.exec import GuestProcess
from multinic.measure.errors import MeasureError
from multinic.measure.shell import Shell, namespace

HOLD = ("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity")
HAND_OVER = (
    "import os,socket;socket.send_fds(socket.socket(fileno=0),[b'n'],[os.open('/proc/self/ns/net',os.O_RDONLY)])"
)


@dataclass(frozen=True)
class Place:
    """A network namespace with one NIC that matters.

    Attributes:
        title: What people call it.
        file: The namespace's file.
        device: The NIC.
        address: Its address.
    """

    title: str
    file: str
    device: str
    address: str

    @property
    def shell(self) -> Shell:
        """Runs this machine's programs inside."""
        return namespace(self.file, self.title)


@contextlib.contextmanager
def held(title: str) -> Iterator[Shell]:
    """A new network namespace that is gone after the block, or with this process."""
    with subprocess.Popen(HOLD, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            if not holder.stdout.readline():
                raise MeasureError("a network namespace cannot be made here: it needs root")
            shell = namespace(f"/proc/{holder.pid}/ns/net", title)
            shell.run(["ip", "link", "set", "lo", "up"])
            yield shell
        finally:
            holder.kill()


def file_of(shell: Shell) -> str:
    """The file of the namespace that a shell of `namespace` enters."""
    return shell.prefix[1].removeprefix("--net=")


def pair(left: Shell, right: Shell, mtu: int, *, devices: tuple[str, str] = ("eth0", "eth0")) -> None:
    """Joins two namespaces by a pair of NICs, both down, of the same MTU."""
    other = Path(file_of(right)).parts[2]
    left.run(
        [
            *("ip", "link", "add", devices[0], "mtu", str(mtu), "type", "veth"),
            *("peer", "name", devices[1], "mtu", str(mtu), "netns", other),
        ]
    )


@contextlib.contextmanager
def plain_link(mtu: int) -> Iterator[tuple[Place, Place]]:
    """Two hosts on one link of this MTU."""
    with held("host-1") as left, held("host-2") as right:
        pair(left, right, mtu)
        for number, shell in enumerate((left, right), 1):
            shell.run(["ip", "address", "add", f"10.99.0.{number}/24", "dev", "eth0"])
            shell.run(["ip", "link", "set", "eth0", "up"])
            # Docker wants a default route to find its own address by.
            shell.run(["ip", "route", "add", "default", "via", f"10.99.0.{3 - number}"])
        yield (
            Place("host-1", file_of(left), "eth0", "10.99.0.1"),
            Place("host-2", file_of(right), "eth0", "10.99.0.2"),
        )


@contextlib.contextmanager
def of_guest(folder: Path, machine: str, address: str) -> Iterator[Place]:
    """The network of a guest of the lab, for programs of this machine."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs, GuestProcess(folder, machine, ["python3", "-c", HAND_OVER], stdin=theirs.fileno()) as process:
            if process.wait(30) != 0:
                raise MeasureError(f"{machine}: its network cannot be entered")
        _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    try:
        file = f"/proc/{os.getpid()}/fd/{handles[0]}"
        shell = namespace(file, machine)
        device = json.loads(shell.run(["ip", "-json", "address", "show", "to", address]))[0]["ifname"]
        yield Place(machine, file, device, address)
    finally:
        os.close(handles[0])
