"""The VMs' name server: names of VMs, metadata server and Cloud Logging only, as nothing leaves the lab.

Names and search domains as with Google's zonal and global internal DNS:
https://docs.cloud.google.com/compute/docs/internal-dns
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import cast

from multinic.lab.fabric.ruleset import APIS, METADATA
from multinic.lab.fabric.vpc import Vpc
from multinic.lab.guests.api_server import LOGGING

PORT = 53
TTL = 30
"""Seconds that an answer may be kept; short, as a name soon means another VM when one is re-created elsewhere."""
A, ANY, INTERNET = 1, 255, 1
ANSWER, RECURSION = 0x8400, 0x0180
NO_SUCH_NAME, NOT_IMPLEMENTED = 3, 4

FIXED = {"metadata.google.internal": METADATA, LOGGING: APIS}


def search_domains(machine: str) -> list[str]:
    """What a VM's resolver tries behind a bare name.

    Args:
        machine: Its key, ``projects/P/zones/Z/instances/NAME``.
    """
    _, project, _, zone, *_ = machine.split("/")
    return [f"{zone}.c.{project}.internal", f"c.{project}.internal", "google.internal"]


def names_of(machine: str) -> list[str]:
    """The full names of a VM: zonal and global."""
    name = machine.rpartition("/")[2]
    zonal, everywhere, _ = search_domains(machine)
    return [f"{name}.{zonal}", f"{name}.{everywhere}"]


def answer(query: bytes, lookup: Callable[[str], IPv4Address | None]) -> bytes | None:
    """The answer to a DNS query of one question; None if it is not one.

    Args:
        query: The packet.
        lookup: Full name in lower case, without the last dot → address, or None.
    """
    if len(query) < 12:
        return None
    number, flags, questions = struct.unpack("!HHH", query[:6])
    if flags & 0x8000 or questions != 1:
        return None
    labels = []
    at = 12
    while at < len(query) and query[at]:
        length = query[at]
        if length > 63 or at + 1 + length > len(query):
            return None
        labels.append(query[at + 1 : at + 1 + length])
        at += 1 + length
    if at + 5 > len(query):
        return None
    question = query[12 : at + 5]
    kind, family = struct.unpack("!HH", query[at + 1 : at + 5])
    base = ANSWER | flags & RECURSION | 0x0080
    if flags >> 11 & 15 or family != INTERNET:
        return struct.pack("!6H", number, base | NOT_IMPLEMENTED, 1, 0, 0, 0) + question
    found = lookup(b".".join(labels).decode(errors="replace").lower())
    if found is None:
        return struct.pack("!6H", number, base | NO_SUCH_NAME, 1, 0, 0, 0) + question
    if kind not in (A, ANY):
        # The name is there, but has no record of this kind: no IPv6 in the lab.
        return struct.pack("!6H", number, base, 1, 0, 0, 0) + question
    record = struct.pack("!HHHIH", 0xC00C, A, INTERNET, TTL, 4) + found.packed
    return struct.pack("!6H", number, base, 1, 1, 0, 0) + question + record


class NameServer:
    """Answers on 169.254.169.254 in each network, by UDP."""

    def __init__(self, lookup: Callable[[str, str], IPv4Address | None]) -> None:
        """Answers nowhere yet.

        Args:
            lookup: Network key and full name → address, or None.
        """
        self._lookup = lookup
        self._transports: dict[str, asyncio.DatagramTransport] = {}

    async def listen(self, network: str, vpc: Vpc) -> None:
        """Answers in a network from now on."""
        if network in self._transports:
            return

        def lookup(name: str) -> IPv4Address | None:
            return FIXED.get(name) or self._lookup(network, name)

        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Answering(lookup), sock=vpc.datagrams(PORT))
        self._transports[network] = transport

    def leave(self, network: str) -> None:
        """Stops answering in a network."""
        transport = self._transports.pop(network, None)
        if transport is not None:
            transport.close()


class _Answering(asyncio.DatagramProtocol):
    def __init__(self, lookup: Callable[[str], IPv4Address | None]) -> None:
        self._lookup = lookup
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not by isinstance: asyncio's own class is none before Python 3.12.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        reply = answer(data, self._lookup)
        if reply is not None and self._transport is not None:
            self._transport.sendto(reply, addr)
