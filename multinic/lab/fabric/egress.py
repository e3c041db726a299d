"""The cap on what a VM sends, shared by all of its NICs.

Google Cloud accounts egress by VM, not by NIC or address, and more NICs add nothing:
https://cloud.google.com/compute/docs/network-bandwidth. The NICs of a VM are plugged into the namespaces of different
networks, and qdiscs and policers of the kernel end at a namespace. So the bucket is a cell of memory (a BPF map) that
one small program reads and writes wherever a NIC of the VM is plugged in. It sits at the fabric's end of the veth, so
that it stays when the NIC moves between the guest and its staging namespace, and the guest cannot touch it.

What is above the cap is dropped. The bucket is kept as the moment up to which the VM's bytes are paid for (the generic
cell rate algorithm: https://www.itu.int/rec/T-REC-I.371).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from pathlib import Path

from multinic.lab.namespaces import Namespace
from multinic.lab.process import run
from multinic.lab.substrate import SubstrateError

BURST_SECONDS = 0.25
"""The bucket holds so much. Nothing queues here as it does in the cloud, so a TCP sender above the cap loses a window
and waits 0.2 s for its retransmission; the bucket must hold what it could have sent meanwhile, or it never gets near
the cap."""
BURST_BYTES = 128 * 1024
"""But at least two packets of segmentation offload."""
LEAST = 1_000_000
"""Bits per second; below it the program's fixed-point cost of a byte overflows."""

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _PROG_LOAD, _OBJ_PIN = 0, 5, 6
_SCHED_CLS = 3
_PINS = Path("/run/multinic/bpf")
_SHIFT = 16
"""A byte's cost in nanoseconds is a fixed-point number with so many binary places."""

_libc = ctypes.CDLL(None, use_errno=True)


class EgressCap:
    """The cap of one VM."""

    def __init__(self, index: int, rate: int) -> None:
        """Describes it.

        Args:
            index: A number that no other VM of this daemon has.
            rate: Bits per second, at least `LEAST`.
        """
        self.rate = max(rate, LEAST)
        self._pin = _PINS / f"egress-{index}"

    @property
    def burst_bytes(self) -> int:
        """What may pass at once after a pause."""
        return max(BURST_BYTES, int(self.rate * BURST_SECONDS / 8))

    async def attach(self, namespace: Namespace, device: str) -> None:
        """Applies the cap to what comes in at a device.

        Raises:
            SubstrateError: This kernel cannot.
        """
        if not self._pin.exists():
            await _mount()
            self._load()
        await run("tc", "-n", namespace.name, "qdisc", "add", "dev", device, "clsact")
        await run(
            *("tc", "-n", namespace.name, "filter", "add", "dev", device, "ingress"),
            *("bpf", "direct-action", "object-pinned", str(self._pin)),
        )

    def close(self) -> None:
        """Forgets the cap; it is gone with the last device that has it."""
        self._pin.unlink(missing_ok=True)

    def _load(self) -> None:
        with contextlib.ExitStack() as stack:
            # An array of one cell: key of 4 bytes, value of 8.
            cell = _bpf(_MAP_CREATE, struct.pack("=IIII", 2, 4, 8, 1))
            stack.callback(os.close, cell)
            code = _program(cell, round(8e9 / self.rate * 2**_SHIFT), round(self.burst_bytes * 8e9 / self.rate))
            held, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"Apache-2.0")
            described = struct.pack(
                "=IIQQ", _SCHED_CLS, len(code) // 8, ctypes.addressof(held), ctypes.addressof(licence)
            )
            program = _bpf(_PROG_LOAD, described)
            stack.callback(os.close, program)
            path = ctypes.create_string_buffer(str(self._pin).encode())
            _bpf(_OBJ_PIN, struct.pack("=QI", ctypes.addressof(path), program))


async def _mount() -> None:
    """Has BPF's file system in the lab's own mount namespace, where `tc` finds the programs."""
    if not _PINS.is_mount():
        _PINS.mkdir(parents=True, exist_ok=True)
        await run("mount", "-t", "bpf", "bpf", str(_PINS))


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


def _program(cell: int, cost: int, burst: int) -> bytes:
    """The program that lets a packet pass or drops it.

    Args:
        cell: Descriptor of the map.
        cost: Of a byte, in nanoseconds, fixed-point.
        burst: Nanoseconds that the VM may be ahead.
    """
    r0, r1, r2, r7, r8, r10 = 0, 1, 2, 7, 8, 10
    passes, drops = 20, 22
    lines = [
        (0x61, r7, r1, 0, 0),  # r7 = packet's length
        (0x62, r10, 0, -4, 0),  # key 0 on the stack
        (0xBF, r2, r10, 0, 0),
        (0x07, r2, 0, 0, -4),  # r2 = the key's address
        (0x18, r1, 1, 0, cell),  # r1 = the map, in two slots
        (0x00, 0, 0, 0, 0),
        (0x85, 0, 0, 0, 1),  # r0 = the cell's address, by map_lookup_elem
        (0x15, r0, 0, passes - 8, 0),  # none: pass
        (0xBF, r8, r0, 0, 0),
        (0x85, 0, 0, 0, 5),  # r0 = now, by ktime_get_ns
        (0x79, r1, r8, 0, 0),  # r1 = paid until
        (0x2D, r1, r0, 2, 0),  # later than now: keep
        (0x7B, r8, r0, 0, 0),  # else nothing is saved up beyond now
        (0xBF, r1, r0, 0, 0),
        (0xBF, r2, r0, 0, 0),
        (0x07, r2, 0, 0, burst),
        (0x2D, r1, r2, drops - 17, 0),  # too far ahead: drop
        (0x27, r7, 0, 0, cost),
        (0x77, r7, 0, 0, _SHIFT),
        (0xDB, r8, r7, 0, 0),  # atomic: two NICs may send at once
        (0xB7, r0, 0, 0, 0),  # pass
        (0x95, 0, 0, 0, 0),
        (0xB7, r0, 0, 0, 2),  # drop
        (0x95, 0, 0, 0, 0),
    ]
    return b"".join(struct.pack("=BBhi", code, to | of << 4, offset, value) for code, to, of, offset, value in lines)
