"""The notification protocol of systemd.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Tells systemd, when it started us, for example ``READY=1``."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.connect("\0" + address[1:] if address.startswith("@") else address)
            channel.sendall(state.encode())
    except OSError:
        pass  # A notification that is lost costs a restart at worst; failing over it would cost one for sure.
