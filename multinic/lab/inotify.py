"""Room for the guests' systemd in a limit of the whole host.

The kernel gives a user 128 inotify instances (``fs.inotify.max_user_instances``, inotify(7)), whatever namespaces they
are made in, and each guest takes 4 or 5 of root's. At some 25 guests, of all labs together, units begin to fail with
"Too many open files". So a lab with guests raises the limit, and the last one on the machine puts it back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
HELD = Path("/run/multinic-inotify")
"""Holds what the limit was. Locked by each lab; a new boot of the machine forgets it together with the limit."""
NEEDED = 8192
PER_GUEST = 5
"""Instances of a router's systemd; client and server take 4."""


@contextlib.contextmanager
def room() -> Iterator[None]:
    """Has the limit raised for the time of a block; where the machine does not let it, everything goes on as it is."""
    held = None
    with contextlib.suppress(OSError):
        held = _take(fcntl.LOCK_SH)
        _raise(held)
    try:
        yield
    finally:
        if held is not None:
            held.close()
        restore()


def restore() -> None:
    """Puts the limit back if no lab runs any more; also what killed ones have left."""
    with contextlib.suppress(OSError):
        if HELD.exists():
            held = _take(fcntl.LOCK_EX | fcntl.LOCK_NB)
            with held:
                if before := held.read().split():
                    with contextlib.suppress(OSError):
                        LIMIT.write_text(f"{before[0]}\n")
                HELD.unlink()


def _raise(held: IO[str]) -> None:
    now = int(LIMIT.read_text())
    if now < NEEDED:
        # Noted before it is raised; two labs that start together note the same.
        if not held.read().strip():
            held.write(f"{now}\n")
            held.flush()
        LIMIT.write_text(f"{NEEDED}\n")


def _take(how: int) -> IO[str]:
    """Opens the file and locks it; again where the lab before has just removed it."""
    while True:
        held = HELD.open("a+")
        try:
            fcntl.flock(held, how)
            if HELD.exists() and os.fstat(held.fileno()).st_ino == HELD.stat().st_ino:
                held.seek(0)
                return held
        except OSError:
            held.close()
            raise
        held.close()
