"""The lab's outer process: starts the daemon in namespaces of its own and leaves nothing behind, however it ends.

    supervisor            plain process of the host; ended by a signal or by the end of its parent
      └ unshare           new mount and process namespaces (the host's network stays: the front door is 127.0.0.1)
          └ init.py       process 1: covers /run and /sys/fs/cgroup, ends with the supervisor or the daemon
              └ daemon    front door, cloud, fabric; its children are the guests

When process 1 ends, the kernel ends all the rest. What that does not cover (`remains`) the supervisor clears, and if
it was killed too, the next start or `multinic lab clean`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from multinic.lab import inotify, remains
from multinic.lab.errors import LabError

INIT = Path(__file__).with_name("init.py")
GRACE = 30.0
"""Seconds for an orderly end before the kernel ends everything."""
LOCK_PATIENCE = 5.0
"""Seconds that a start waits for a lab in the same folder whose supervisor may be just ending."""
DEATH_PATIENCE = 60.0
"""Seconds that a start waits for the processes of a lab whose supervisor was killed: the kernel is at it."""


class SupervisorError(LabError):
    """The lab cannot be started; the text says why and what to do."""


def supervise(command: Sequence[str], folder: Path, *, ephemeral: bool = False, parent: int | None = None) -> int:
    """Runs `command` as the lab's daemon and returns its exit code, with everything cleared.

    Args:
        command: The daemon, as an argument list. It inherits standard output and error; its standard input is a pipe
        that
            stays open and empty for as long as the lab lives.
        folder: The lab's folder; made if it is not there. At most one lab runs in a folder.
        ephemeral: Remove the folder in the end.
        parent: Read end of a pipe whose other end the parent holds: its end of file ends the lab.

    Raises:
        SupervisorError: Not root, no namespaces, or a lab runs in the folder already.
    """
    if os.geteuid() != 0:
        raise SupervisorError("the lab's machines need root: run it with sudo, or use the lab without guests")
    folder = folder.resolve()
    if folder.is_relative_to("/run"):
        raise SupervisorError(f"{folder} lies in /run, which the lab covers with its own: choose another folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    held = _take_lock(folder)
    record = remains.record_of(folder, ephemeral=ephemeral)
    try:
        remains.clear(remains.record_of(folder))
        remains.write_record(record)
        (folder / remains.PID).write_text(f"{os.getpid()}\n")
        with inotify.room():
            return _Tree(command, record, held).run(parent)
    finally:
        remains.clear(record)
        held.close()


def run_in_lab(command: Sequence[str], folder: Path, *, ephemeral: bool = False) -> subprocess.Popen[bytes]:
    """Starts a supervisor for `command` that ends with the calling process, even if that is killed.

    The caller keeps the returned process's standard input open for as long as the lab shall run; it is the pipe that
    holds the lab's life. Closing it, or terminating the process, ends the lab in order.
    """
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "multinic.lab.supervisor", "--folder", str(folder)),
            *(["--ephemeral"] if ephemeral else []),
            "--",
            *command,
        ],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _take_lock(folder: Path) -> IO[str]:
    began = time.monotonic()
    while (held := remains.lock(folder)) is None:
        if time.monotonic() - began > (LOCK_PATIENCE if _is_alive(folder / remains.PID) else DEATH_PATIENCE):
            raise SupervisorError(f"a lab runs in {folder} already: use it, end it, or choose another folder")
        time.sleep(0.05)
    return held


def _is_alive(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


class _Tree:
    """The namespaces with the daemon in them, as seen from outside."""

    def __init__(self, command: Sequence[str], record: remains.Record, lock: IO[str]) -> None:
        self._command = list(command)
        self._record = record
        self._lock = lock

    def run(self, parent: int | None) -> int:
        """Starts the tree and stays until it has ended."""
        inner, self._life_line = os.pipe()
        signals, on_signal = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        before = {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        previous = signal.set_wakeup_fd(on_signal)
        try:
            with self._start(inner) as process:
                os.close(inner)
                try:
                    return self._wait(process, signals, parent)
                finally:
                    # Before the `with` waits for the process: nothing may keep it alive now.
                    self._let_go()
        finally:
            signal.set_wakeup_fd(previous)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(signals)
            os.close(on_signal)

    def _start(self, inner: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                # Process 1 must not outlive `unshare`, nor `unshare` the supervisor.
                *("setpriv", "--pdeathsig", "KILL"),
                *("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
                *(sys.executable, "-I", str(INIT), "--life-line", str(inner), "--cgroup", self._record.cgroup, "--"),
                *self._command,
            ],
            # The lock stays taken until process 1 has ended too.
            pass_fds=(inner, self._lock.fileno()),
            stdin=subprocess.DEVNULL,
            # Ctrl-C reaches the supervisor alone, which ends the daemon in order.
            start_new_session=True,
        )

    def _wait(self, process: subprocess.Popen[bytes], signals: int, parent: int | None) -> int:
        deadline: float | None = None
        ended = os.pidfd_open(process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for handle in (ended, signals, *(() if parent is None else (parent,))):
                    selector.register(handle, selectors.EVENT_READ)
                while process.poll() is None:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        self._let_go()
                        left = None
                        deadline = None
                    for key, _ in selector.select(left):
                        if key.fd == parent:
                            if os.read(parent, 4096):
                                continue
                            selector.unregister(parent)
                        elif key.fd == signals:
                            os.read(signals, 4096)
                        else:
                            continue
                        if deadline is None:
                            deadline = time.monotonic() + GRACE
                            self._ask_to_end()
                        else:
                            # Asked twice: the user will not wait.
                            self._let_go()
        finally:
            os.close(ended)
        code = process.returncode
        return 128 - code if code < 0 else code

    def _ask_to_end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._life_line, b"T")

    def _let_go(self) -> None:
        if self._life_line >= 0:
            os.close(self._life_line)
            self._life_line = -1


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m multinic.lab.supervisor --folder F [--ephemeral] -- COMMAND …``."""
    parser = argparse.ArgumentParser(prog="python -m multinic.lab.supervisor", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="the lab's folder")
    parser.add_argument("--ephemeral", action="store_true", help="remove the folder in the end")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("a command is missing after --")
    try:
        # A pipe as standard input is held by whoever started the lab: its end is their end.
        parent = 0 if stat.S_ISFIFO(os.fstat(0).st_mode) else None
        return supervise(command, options.folder, ephemeral=options.ephemeral, parent=parent)
    except SupervisorError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
