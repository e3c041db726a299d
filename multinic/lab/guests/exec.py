"""Programs in guests, for the command line, scenarios and tests: `multinic lab exec`.

Goes by the lab folder's control socket to the daemon, which alone can reach the guests.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from multinic.lab.errors import LabError
from multinic.lab.guests import channel

PIPE = subprocess.PIPE
DEVNULL = subprocess.DEVNULL
Stream = int | IO[bytes] | IO[str] | None


class GuestError(LabError):
    """The program cannot be run there; the text says why."""


class GuestProcess:
    """A program that runs in a guest, in the manner of `subprocess.Popen`.

    It is killed when it is told to, and when the process that started it ends.

    Attributes:
        stdin: Binary stream if it was started with ``stdin=PIPE``.
        stdout: Likewise.
        stderr: Likewise.
        returncode: Its exit code; None while it runs.
    """

    def __init__(
        self,
        folder: Path,
        machine: str,
        argv: Sequence[str],
        *,
        stdin: Stream = DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> None:
        """Starts it.

        Args:
            folder: The lab's folder.
            machine: The VM's name, or ``projects/P/zones/Z/instances/NAME`` where two zones have the same.
            argv: Program and arguments; no shell.
            stdin: File, descriptor, `PIPE`, `DEVNULL`, or None for the caller's own.
            stdout: Likewise.
            stderr: Likewise.

        Raises:
            GuestError: No lab runs in the folder.
        """
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self.returncode: int | None = None
        self._machine = machine
        self._closing: list[int] = []
        self._connection = channel.make()
        try:
            channel.at_control_socket(folder, self._connection.connect)
        except OSError:
            self._connection.close()
            raise GuestError(f"no lab with guests runs in {folder}") from None
        handles = [self._input(stdin), self._output(stdout, 1), self._output(stderr, 2)]
        request = {"machine": machine, "argv": list(argv), "term": os.environ.get("TERM")}
        try:
            socket.send_fds(self._connection, [json.dumps(request).encode()], handles)
        except OSError as error:
            self._connection.close()
            raise GuestError(f"the lab in {folder} does not take the program: {error.strerror}") from None
        finally:
            for handle in self._closing:
                os.close(handle)

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end and returns its exit code.

        Raises:
            subprocess.TimeoutExpired: It still runs after `timeout` seconds.
            GuestError: It was never started, or the lab ended.
        """
        if self.returncode is not None:
            return self.returncode
        if not select.select([self._connection], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self._machine, timeout or 0.0)
        try:
            message = self._connection.recv(channel.MAX_MESSAGE)
        except ConnectionResetError:
            message = b""
        self._connection.close()
        reply = json.loads(message) if message else {"error": "the lab has ended"}
        self.returncode = int(reply.get("exit", 255))
        if "error" in reply:
            raise GuestError(reply["error"])
        return self.returncode

    def kill(self) -> None:
        """Kills it, and all that it started in the guest."""
        if self.returncode is None:
            self._connection.close()
            self.returncode = 128 + 9

    terminate = kill

    def __enter__(self) -> GuestProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def _input(self, stream: Stream) -> int:
        if stream == PIPE:
            theirs, ours = os.pipe()
            self.stdin = os.fdopen(ours, "wb")
            return self._close_later(theirs)
        return self._own(stream, 0, os.O_RDONLY)

    def _output(self, stream: Stream, number: int) -> int:
        if stream == PIPE:
            ours, theirs = os.pipe()
            file = os.fdopen(ours, "rb")
            if number == 1:
                self.stdout = file
            else:
                self.stderr = file
            return self._close_later(theirs)
        return self._own(stream, number, os.O_WRONLY)

    def _own(self, stream: Stream, number: int, flags: int) -> int:
        if stream is None:
            return number
        if stream == DEVNULL:
            return self._close_later(os.open(os.devnull, flags))
        return stream if isinstance(stream, int) else stream.fileno()

    def _close_later(self, handle: int) -> int:
        self._closing.append(handle)
        return handle


def exec_in_guest(
    folder: Path,
    machine: str,
    argv: Sequence[str],
    *,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
) -> int:
    """Runs a program in a guest with the caller's own streams, and returns its exit code.

    Raises:
        GuestError: It cannot be run there.
    """
    process = GuestProcess(folder, machine, argv, stdin=stdin, stdout=stdout, stderr=stderr)
    try:
        return process.wait()
    finally:
        process.kill()


def run_in_guest(folder: Path, machine: str, argv: Sequence[str], *, timeout: float | None = None) -> str:
    """Runs a program in a guest and returns what it wrote to standard output.

    Raises:
        GuestError: It cannot be run there, or its exit code is not 0; with what it wrote to standard error.
        subprocess.TimeoutExpired: It took longer than `timeout` seconds.
    """
    with open(os.devnull, "rb") as nothing, _memory() as output, _memory() as errors:  # noqa: PTH123
        process = GuestProcess(folder, machine, argv, stdin=nothing, stdout=output, stderr=errors)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        output.seek(0)
        errors.seek(0)
        if code != 0:
            said = errors.read().decode(errors="replace").strip()
            raise GuestError(f"{argv[0]} in {machine} ended with exit code {code}: {said[-600:]}")
        return output.read().decode(errors="replace")


def _memory() -> IO[bytes]:
    """A file in memory: unlike a pipe it never fills, and nobody must read it meanwhile."""
    return os.fdopen(os.memfd_create("output"), "w+b")


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m multinic.lab.guests.exec FOLDER MACHINE -- PROGRAM …``."""
    parser = argparse.ArgumentParser(prog="python -m multinic.lab.guests.exec", description=__doc__)
    parser.add_argument("folder", type=Path, help="the lab's folder")
    parser.add_argument("machine", help="name or key of the VM")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- program", help="program and arguments")
    options = parser.parse_args(arguments)
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if not argv:
        parser.error("a program is missing after --")
    try:
        return exec_in_guest(options.folder, options.machine, argv)
    except GuestError as error:
        sys.stderr.write(f"{error}\n")
        return 255
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
