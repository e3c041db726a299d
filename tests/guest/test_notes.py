"""Which of the kernel's notes on neighbours wake the watcher: it tells of each that is asked for again, too."""

import socket
import struct
from collections.abc import Iterator

import pytest
import watch

PERMANENT, NOARP, REACHABLE, STALE = 0x80, 0x40, 0x02, 0x04
DELETED = 29


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The watcher's end, and the kernel's."""
    ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, kernels:
        ours.setblocking(False)
        yield ours, kernels


def note(state: int, kind: int = watch.NEWNEIGH) -> bytes:
    """linux/rtnetlink.h: nlmsghdr, ndmsg, and an attribute that makes its length odd."""
    body = struct.pack("=BxHiHBB", socket.AF_INET, 0, 3, state, 0, 1) + b"\x05\x00\x01\x00x"
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body + b"\0" * 3


@pytest.mark.parametrize(
    ("notes", "wakes"),
    [
        ([note(PERMANENT)], True),
        ([note(NOARP)], True),
        ([note(REACHABLE)], False),
        ([note(REACHABLE), note(STALE), note(PERMANENT)], True),
        ([note(STALE) + note(PERMANENT)], True),
        ([note(PERMANENT, DELETED)], False),
        ([b""], True),
        ([b"short"], False),
        ([], False),
    ],
    ids=["permanent", "noarp", "reachable", "the last of three", "two in one", "deleted", "lost", "half", "none"],
)
def test_only_what_the_network_cannot_correct(
    ends: tuple[socket.socket, socket.socket], notes: list[bytes], wakes: bool
) -> None:
    ours, kernels = ends
    for text in notes:
        kernels.send(text)
    assert watch.tells_of_fixed(ours) == wakes
    assert watch.receive(ours) is None, "all have been read"
