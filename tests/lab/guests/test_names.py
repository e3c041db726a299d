"""The VMs' name server, packet by packet."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multinic.lab.guests.names import answer, names_of

KNOWN = {"vm.z.c.lab.internal": IPv4Address("10.0.0.9")}


def query(name: str, kind: int = 1, family: int = 1, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    return struct.pack("!6H", 77, flags, 1, 0, 0, 0) + labels + struct.pack("!HH", kind, family)


@pytest.mark.parametrize(
    ("asked", "code", "count"),
    [
        (query("vm.z.c.lab.internal"), 0, 1),
        (query("VM.z.C.lab.internal"), 0, 1),
        (query("vm.z.c.lab.internal", kind=28), 0, 0),
        (query("other.z.c.lab.internal"), 3, 0),
        (query("vm.z.c.lab.internal", family=3), 4, 0),
        (query("vm.z.c.lab.internal", flags=0x0900), 4, 0),
    ],
)
def test_answers(asked: bytes, code: int, count: int) -> None:
    reply = answer(asked, KNOWN.get)
    assert reply is not None
    number, flags, questions, answers, *_ = struct.unpack("!6H", reply[:12])
    assert (number, flags >> 15, flags & 15, questions, answers) == (77, 1, code, 1, count)
    assert reply[12 : len(asked)] == asked[12:]
    assert reply.endswith(IPv4Address("10.0.0.9").packed) == bool(count)


def test_zonal_and_global_names() -> None:
    assert names_of("projects/lab/zones/z/instances/vm") == ["vm.z.c.lab.internal", "vm.c.lab.internal"]


@given(st.binary(max_size=80))
def test_garbage_is_answered_or_not_but_never_fails(data: bytes) -> None:
    reply = answer(data, KNOWN.get)
    assert reply is None or reply[:2] == data[:2]
