"""Named network namespaces, and sockets inside them that the daemon's one event loop uses like any other.

A socket belongs for good to the namespace in which it was made, so the calling thread enters one only for as long as
it takes to make the socket, without giving up control in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from multinic.lab.process import run
from multinic.lab.substrate import SubstrateError

CLONE_NEWNET = 0x40000000
"""``setns(2)``: the file descriptor must be a network namespace."""
SIOCSIFFLAGS = 0x8914
"""``netdevice(7)``: sets a device's flags."""

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace with a name below /run/netns.

    Attributes:
        name: As `ip netns` shows it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def path(self) -> Path:
        """Where the kernel's object is found."""
        return Path("/run/netns") / self.name

    async def create(self) -> None:
        """Makes the namespace, with its loopback device up and without IPv6, which the lab does not have."""
        if not self.path.exists():
            await run("ip", "netns", "add", self.name)
        self.sysctl({"ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1"})
        await self.ip("link set lo up")

    async def delete(self) -> None:
        """Removes it, with all devices in it; nothing to do if it is not there."""
        if self.path.exists():
            await run("ip", "netns", "delete", self.name)

    async def ip(self, *lines: str) -> None:
        """Runs lines of `ip` inside, as one batch that stops at the first failure."""
        await run("ip", "-n", self.name, "-batch", "-", text="\n".join(lines) + "\n")

    async def nft(self, rules: str) -> None:
        """Loads nftables rules inside, in one transaction."""
        await run("nsenter", f"--net={self.path}", "nft", "-f", "-", text=rules)

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A non-blocking socket that lives inside."""
        with self._entered():
            made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    def sysctl(self, values: Mapping[str, str]) -> None:
        """Sets network settings; keys are paths below /proc/sys/net. What this kernel does not have is left out."""
        with self._entered():
            for key, value in values.items():
                path = Path("/proc/sys/net", key)
                if path.exists():
                    path.write_text(value)

    def received_bytes(self) -> dict[str, int]:
        """Bytes that each device inside has received."""
        return self._counters(0)

    def sent_bytes(self) -> dict[str, int]:
        """Bytes that each device inside has sent."""
        return self._counters(8)

    def _counters(self, column: int) -> dict[str, int]:
        with self._entered():
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
        counters = {}
        for line in lines:
            device, _, numbers = line.partition(":")
            counters[device.strip()] = int(numbers.split()[column])
        return counters

    def _entered(self) -> contextlib.AbstractContextManager[None]:
        return _entered(self.path)


def unplug_all(namespace: Path) -> None:
    """Takes all devices of a network namespace down, loopback aside; nothing to do if it is gone.

    Args:
        namespace: Its file, such as ``/proc/1234/ns/net``.
    """
    with (
        contextlib.suppress(SubstrateError, OSError),
        _entered(namespace),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket,
    ):
        for _, name in socket.if_nameindex():
            if name != "lo":
                # struct ifreq: the name and no flags, so not IFF_UP.
                fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), 0))


@contextlib.contextmanager
def _entered(path: Path) -> Iterator[None]:
    """Has the calling thread inside of a namespace for a moment; nothing in between may give up control."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            inside = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise SubstrateError(f"network namespace {path} is gone") from None
        try:
            _setns(inside)
        finally:
            os.close(inside)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise SubstrateError(f"entering a network namespace: {os.strerror(number)}")
