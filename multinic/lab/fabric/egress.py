"""The cap on what a VM sends: one queue for all of its NICs together.

Google Cloud accounts egress by VM, not by NIC or address, and more NICs add nothing:
https://cloud.google.com/compute/docs/network-bandwidth. The NICs of a VM are plugged into the namespaces of different
networks, and queues of the kernel end at a namespace. So each VM has a namespace of its own between guest and fabric,
which stands for its host:

    guest    host                                                  network
    ens4 ── g0 ─┐                                      ┌─ f0 ── v7
                ├─► q0, the queue ─► q1, back by NIC ──┤
    ens5 ── g1 ─┘                                      └─ f1 ── v8

Three small programs (BPF) carry packets along: from g to the queue with the NIC noted as a mark, from q1 to the other
end of f by that mark, and, what comes in, from f straight to the guest. Nothing is routed or tracked on the way, the
guest cannot touch it, and it stays when the guest reboots.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import struct
from collections.abc import Sequence
from pathlib import Path

from multinic.lab.namespaces import Namespace
from multinic.lab.process import run
from multinic.lab.substrate import SubstrateError

LEAST = 1_000_000
"""Bits per second; less than that would hold a single packet of segmentation offload for half a second."""
BURST_SECONDS = 0.005
"""What may leave at once after a pause: below some milliseconds of the rate the queue falls behind it."""
BURST_BYTES = 128 * 1024
"""But at least two packets of segmentation offload."""
QUEUE_SECONDS = 0.02
"""How much waits before the queue drops."""
QUEUE_BYTES = 512 * 1024
"""But at least some packets of segmentation offload."""
ETHERNET = 14
"""Bytes of a packet's frame, which the queue counts and the cap does not."""
QUEUE_MTU = 65535

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _OBJ_PIN = 5, 6
_SCHED_CLS = 3
_PINS = Path("/run/multinic/bpf")

_libc = ctypes.CDLL(None, use_errno=True)


class EgressCap:
    """The cap of one VM, and its host's namespace."""

    def __init__(self, index: int, rate: int, mtu: int = 1460) -> None:
        """Describes it.

        Args:
            index: A number that no other VM of this daemon has.
            rate: Bits per second, of IP packets, at least `LEAST`.
            mtu: Of its NICs, the smallest.
        """
        self.rate = max(rate, LEAST)
        self._mtu = mtu
        self._host = Namespace(f"host-{index}")
        self._index = index

    @property
    def burst_bytes(self) -> int:
        """What may pass at once after a pause."""
        return max(BURST_BYTES, int(self.rate * BURST_SECONDS / 8))

    @property
    def queue_bytes(self) -> int:
        """What may wait."""
        return max(QUEUE_BYTES, int(self.rate * QUEUE_SECONDS / 8))

    async def change(self, rate: int) -> None:
        """Caps at another rate from now on."""
        self.rate = max(rate, LEAST)
        if self._host.path.exists():
            await self._queue("change")

    async def plug(self, nic: int, mtu: int, fabric: Sequence[str], guest: Sequence[str]) -> None:
        """Makes both veths of a NIC and leads its packets through the queue.

        Args:
            nic: Number of the NIC in its machine.
            mtu: Bytes.
            fabric: Arguments of `ip link add` for the fabric's end.
            guest: The same for the guest's end.

        Raises:
            SubstrateError: This kernel cannot; nothing is left of the NIC.
        """
        try:
            await self._ensure()
            to_fabric, to_guest = f"f{nic}", f"g{nic}"
            for own, other in ((to_fabric, fabric), (to_guest, guest)):
                await run(
                    *("ip", "link", "add", own, "mtu", str(mtu), "netns", self._host.name, "type", "veth"),
                    *("peer", "name", *other),
                )
            await self._host.ip(f"link set {to_fabric} up", f"link set {to_guest} up")
            numbers = await self._numbers()
            await self._attach(to_guest, _to_queue(numbers[to_fabric], numbers["q0"]))
            await self._attach(to_fabric, _to_peer_of(numbers[to_guest]))
        except SubstrateError:
            with contextlib.suppress(SubstrateError):
                await self.unplug(nic)
            raise

    async def unplug(self, nic: int) -> None:
        """Removes a NIC's veths; nothing to do if they are not there."""
        if self._host.path.exists():
            there = await self._numbers()
            await self._host.ip(*(f"link delete {name}" for name in (f"f{nic}", f"g{nic}") if name in there))

    async def close(self) -> None:
        """Removes the host with all that is left in it."""
        await self._host.delete()

    async def _ensure(self) -> None:
        if self._host.path.exists():
            return
        await _mount()
        await self._host.create()
        await self._host.ip(
            f"link add q0 mtu {QUEUE_MTU} type veth peer name q1 mtu {QUEUE_MTU}", "link set q0 up", "link set q1 up"
        )
        await self._queue("add")
        await self._attach("q1", _by_mark())

    async def _queue(self, what: str) -> None:
        rate = round(self.rate * (self._mtu + ETHERNET) / self._mtu)
        await run(
            *("tc", "-n", self._host.name, "qdisc", what, "dev", "q0", "root", "tbf", "rate", f"{rate}bit"),
            *("burst", str(self.burst_bytes), "limit", str(self.queue_bytes)),
        )

    async def _attach(self, device: str, code: bytes) -> None:
        """Has a program decide about all that comes in at a device."""
        pin = _PINS / f"{self._host.name}-{device}"
        _load(code, pin)
        try:
            await run("tc", "-n", self._host.name, "qdisc", "add", "dev", device, "clsact")
            await run(
                *("tc", "-n", self._host.name, "filter", "add", "dev", device, "ingress"),
                *("bpf", "direct-action", "object-pinned", str(pin)),
            )
        finally:
            # The device holds it now.
            pin.unlink()

    async def _numbers(self) -> dict[str, int]:
        """Name of each device of the host → its number."""
        devices = json.loads(await run("ip", "-n", self._host.name, "-json", "link", "show"))
        return {device["ifname"]: device["ifindex"] for device in devices}


async def _mount() -> None:
    """Has BPF's file system in the lab's own mount namespace, where `tc` finds the programs."""
    if not _PINS.is_mount():
        _PINS.mkdir(parents=True, exist_ok=True)
        await run("mount", "-t", "bpf", "bpf", str(_PINS))


def _load(code: bytes, pin: Path) -> None:
    """Loads a program and pins it where `tc` can take it from."""
    held, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"Apache-2.0")
    program = _bpf(
        _PROG_LOAD,
        struct.pack("=IIQQ", _SCHED_CLS, len(code) // 8, ctypes.addressof(held), ctypes.addressof(licence)),
    )
    try:
        path = ctypes.create_string_buffer(str(pin).encode())
        _bpf(_OBJ_PIN, struct.pack("=QI", ctypes.addressof(path), program))
    finally:
        os.close(program)


def _bpf(command: int, described: bytes) -> int:
    """The system call bpf(2)."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise SubstrateError(f"caps on egress are not known for {platform.machine()}")
    # The kernel takes as many zeros as it likes after what it knows.
    attributes = ctypes.create_string_buffer(described.ljust(128, b"\0"), 128)
    result = int(_libc.syscall(number, command, attributes, len(attributes)))
    if result < 0:
        raise SubstrateError(f"this kernel takes no cap on egress: bpf: {os.strerror(ctypes.get_errno())}")
    return result


_R1, _R2, _R3 = 1, 2, 3
_MARK = 8
"""Where struct __sk_buff has the packet's mark."""
_REDIRECT, _REDIRECT_PEER = 23, 155
"""Numbers of the helpers; see bpf-helpers(7)."""
_EXIT = (0x95, 0, 0, 0, 0)


def _to_queue(mark: int, device: int) -> bytes:
    """Notes a mark and sends by a device."""
    return _code(
        (0xB7, _R2, 0, 0, mark),  # r2 = the mark
        (0x63, _R1, _R2, _MARK, 0),  # packet's mark = r2
        (0xB7, _R1, 0, 0, device),
        (0xB7, _R2, 0, 0, 0),
        (0x85, 0, 0, 0, _REDIRECT),
        _EXIT,
    )


def _to_peer_of(device: int) -> bytes:
    """Has the packet received at the other end of a device's veth."""
    return _code((0xB7, _R1, 0, 0, device), (0xB7, _R2, 0, 0, 0), (0x85, 0, 0, 0, _REDIRECT_PEER), _EXIT)


def _by_mark() -> bytes:
    """Has the packet received at the other end of the device that its mark names, without the mark."""
    return _code(
        (0x61, _R3, _R1, _MARK, 0),  # r3 = packet's mark
        (0xB7, _R2, 0, 0, 0),
        (0x63, _R1, _R2, _MARK, 0),  # packet's mark = 0
        (0xBF, _R1, _R3, 0, 0),
        (0x85, 0, 0, 0, _REDIRECT_PEER),
        _EXIT,
    )


def _code(*lines: tuple[int, int, int, int, int]) -> bytes:
    return b"".join(struct.pack("=BBhi", code, to | of << 4, offset, value) for code, to, of, offset, value in lines)
