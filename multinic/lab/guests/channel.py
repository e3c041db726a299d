"""The control socket between the daemon and `multinic lab exec`: one message with file descriptors, one answer.

Its path may be longer than the 107 bytes that a socket's address takes, so both ends reach it by way of an open folder.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from multinic.lab.remains import CONTROL_SOCKET

MAX_MESSAGE = 1 << 20
"""Bytes of one message: an argument list, which may hold a whole program."""


def at_control_socket(folder: Path, use: Callable[[str], None]) -> None:
    """Calls `use` with an address of the control socket in `folder` that is short enough."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{handle}/{CONTROL_SOCKET}")
    finally:
        os.close(handle)


def make() -> socket.socket:
    """A socket that keeps messages apart, with room for a long one."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_MESSAGE)
    return made
