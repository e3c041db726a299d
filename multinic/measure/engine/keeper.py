"""Clears what Docker Engines of our own leave, once the process that started them is gone: `keeper FOLDER CGROUP`.

Its standard input is a pipe that the starter holds open. The kernel has ended the engines by then, or is at it.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path

PATIENCE = 30.0
"""Seconds for the kernel to end all processes of the engines."""


def main(folder: str, cgroup: str) -> None:
    """Waits for the end of standard input, then removes the folder and the control groups."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + PATIENCE
    while not clear(cgroup) and time.monotonic() < deadline:
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)


def clear(cgroup: str) -> bool:
    """Removes control groups of this name in every hierarchy, innermost first; whether none is left."""
    root = Path("/sys/fs/cgroup")
    tops = [top for top in (root / cgroup, *root.glob(f"*/{cgroup}")) if top.is_dir()]
    for top in tops:
        for path in (*sorted(top.rglob("*/"), reverse=True), top):
            try:
                path.rmdir()
            except OSError:
                continue
    return not any(top.is_dir() for top in tops)


if __name__ == "__main__":
    main(*sys.argv[1:])
