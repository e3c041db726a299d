"""Process 1 of the lab's own process tree: a self-contained program, started by the supervisor inside fresh namespaces.

Everything that the lab mounts, names or starts lives in the mount and process namespaces whose first process this is.
When it ends, for whatever reason, the kernel kills every other process in them and drops every mount and every named
network namespace. So it has one duty: to end when the supervisor or the daemon does.

It is run by its path (`python init.py …`), not as a module, so that process 1 imports nothing but a few standard
modules.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path

PRIVATE_RUN_FOLDERS = ("lock", "multinic", "netns", "systemd")
"""What lies in the private /run: `ip netns` names its namespaces there, nspawn keeps its locks there."""

TERMINATE = b"T"
"""One byte on the life line asks for an orderly end; its end of file means: at once."""


def mount(source: str, target: str, kind: str, options: str = "") -> None:
    """Mounts, by the system call: a shell of its own for each mount would cost more than the rest of this program."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mounting {kind} on {target}: {os.strerror(number)}")


def unmount_below(target: str) -> None:
    """Detaches the mounts on `target` and below it, in this mount namespace only."""
    subprocess.run(["umount", "--recursive", "--lazy", target], check=False, stderr=subprocess.DEVNULL)


def make_private(cgroup: str) -> None:
    """Covers /run, and shows /sys/fs/cgroup as cgroup2 alone, which is what nspawn and its guests expect.

    On a hybrid host (version 1 controllers beside a cgroup2 mount) a guest would call itself tainted and two guests
    would share paths; a private cgroup2 mount cures both. On a host with cgroup2 alone this gives what was there
    before.
    """
    mount("tmpfs", "/run", "tmpfs", "mode=755")
    for name in PRIVATE_RUN_FOLDERS:
        Path("/run", name).mkdir()
    unmount_below("/sys/fs/cgroup")
    mount("none", "/sys/fs/cgroup", "cgroup2")
    own = Path("/sys/fs/cgroup", cgroup, "daemon")
    own.mkdir(parents=True, exist_ok=True)
    (own / "cgroup.procs").write_text("0\n")


def reap(daemon: int) -> int | None:
    """Collects ended children, adopted ones too; the daemon's exit code once it is among them."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            # No child is left, so the daemon is not either.
            return 255 if code is None else code
        if pid == 0:
            return code
        if pid == daemon:
            code = os.waitstatus_to_exitcode(status)


def run(command: list[str], life_line: int, cgroup: str) -> int:
    """Starts the daemon and stays until it or the supervisor ends."""
    make_private(cgroup)
    wake_up, on_child = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(on_child)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # A signal of the terminal is the supervisor's affair, which passes it on in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # The other end stays open here: the daemon's standard input ends when the lab does.
    daemon = subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=default_signals)
    with selectors.DefaultSelector() as selector:
        selector.register(life_line, selectors.EVENT_READ)
        selector.register(wake_up, selectors.EVENT_READ)
        while True:
            code = reap(daemon.pid)
            if code is not None:
                return 128 - code if code < 0 else code
            for key, _ in selector.select():
                if key.fd == wake_up:
                    os.read(wake_up, 4096)
                elif os.read(life_line, 1) == TERMINATE:
                    os.kill(daemon.pid, signal.SIGTERM)
                else:
                    return 128 + signal.SIGKILL


def default_signals() -> None:
    """Gives the daemon the signal handling that programs expect at their start."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def main() -> int:
    """Parses the command line that the supervisor made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--life-line", type=int, required=True, help="file descriptor that the supervisor holds open")
    parser.add_argument("--cgroup", required=True, help="folder below /sys/fs/cgroup for all of the lab")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    os.set_inheritable(options.life_line, False)
    return run(command, options.life_line, options.cgroup)


if __name__ == "__main__":
    # No orderly interpreter shutdown: the kernel ends the rest of the tree the moment that this returns.
    sys.stdout.flush()
    os._exit(main())
