"""Live TCP connections between two guests, and what became of them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios.gaps import Gap

PROGRAMS = Path(__file__).parent / "programs"
STREAM_MEGABITS = 20.0
SLOW_SECONDS = 0.5
"""A new connection that takes longer than this counts as slow."""


@dataclass(frozen=True)
class Guest:
    """A VM that traffic runs from or to."""

    name: str
    address: str
    zone: str


class GuestProgram:
    """One of `programs/` running in a guest. Its standard input is its leash: closed, it ends by itself."""

    def __init__(self, lab: Lab, guest: str, program: str, *arguments: object) -> None:
        source = (PROGRAMS / f"{program}.py").read_text()
        inside = ["python3", "-c", source, *(str(argument) for argument in arguments)]
        command = [sys.executable, "-m", "multinic.lab.guests.exec", str(lab.folder), guest, "--", *inside]
        self.title = f"{program} in {guest}"
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.lines.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def tell(self, line: str) -> None:
        """Writes a line to its standard input.

        Raises:
            LabError: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise LabError(f"{self.title} has ended: {self._complaint(True)}") from None

    def wait_for(self, key: str, timeout: float = 60, number: int = 1) -> dict[str, Any]:
        """The first line, or the nth, that has this key.

        Raises:
            LabError: The program ended without it, or it did not come in time.
        """
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                found = [line for line in self.lines if key in line]
                if len(found) >= number:
                    return found[number - 1]
                ended = not self._reader.is_alive()
                if ended or time.monotonic() >= deadline:
                    raise LabError(f"{self.title} did not say {key!r}: {self._complaint(ended)}")
                self._news.wait(min(1.0, max(0.01, deadline - time.monotonic())))

    def _complaint(self, ended: bool) -> str:
        if not ended:
            return "it is still running"
        assert self._process.stderr is not None
        return self._process.stderr.read().strip().rpartition("\n")[2] or "it ended without a word"

    def finish(self, timeout: float = 60) -> None:
        """Closes its standard input and waits; what does not end is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, if it has not ended."""
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=10)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None and not pipe.closed:
                with suppress(BrokenPipeError):
                    pipe.close()


@dataclass(frozen=True)
class Sample:
    """Bytes that came between two moments of the monotonic clock."""

    first: float
    last: float
    bytes: int


class Received:
    """Bytes that came in a guest, as one of its programs reports them."""

    _receive: GuestProgram

    @property
    def samples(self) -> list[Sample]:
        """What came so far."""
        return [Sample(line["first"], line["last"], line["bytes"]) for line in self._receive.lines if "bytes" in line]

    def flows_since(self, moment: float) -> bool:
        """Whether bytes came after this moment."""
        return any(line.get("last", 0.0) > moment for line in self._receive.lines[-3:])

    def gaps(self, since: float, until: float) -> list[Gap]:
        """The times without received bytes between two moments, longest first; never empty."""
        samples = [sample for sample in self.samples if since <= sample.last and sample.first <= until]
        starts, ends = [since, *(s.last for s in samples)], [*(s.first for s in samples), until]
        found = [Gap(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]
        return sorted(found, key=lambda gap: -gap.seconds)

    def pauses(self) -> list[Gap]:
        """The times between what came: each is over."""
        return [Gap(one.last, other.first) for one, other in pairwise(self.samples)]


class Control(Received):
    """A stream within a guest, of the pace of the others: it passes no network, so its gaps are the machine's own."""

    def __init__(self, lab: Lab, guest: Guest) -> None:
        self._receive = GuestProgram(lab, guest.name, "within", STREAM_MEGABITS)
        try:
            self._receive.wait_for("bytes")
        except BaseException:
            self._receive.kill()
            raise

    def kill(self) -> None:
        """Ends it at once."""
        self._receive.kill()


class Stream(Received):
    """A paced TCP stream from one guest to another."""

    def __init__(
        self,
        lab: Lab,
        title: str,
        sender: Guest,
        receiver: Guest,
        *,
        port: int,
        source_port: int,
        megabits: float,
    ) -> None:
        self.title = title
        self._connections = 1
        self._receive = GuestProgram(lab, receiver.name, "receive", port)
        try:
            self._receive.wait_for("listening")
            self._send = GuestProgram(lab, sender.name, "send", receiver.address, port, source_port, megabits)
            try:
                self._send.wait_for("connected")
                self._receive.wait_for("bytes")
            except BaseException:
                self._send.kill()
                raise
        except BaseException:
            self._receive.kill()
            raise

    def reconnect(self) -> None:
        """Closes the connection and opens another one, from the next source port.

        Raises:
            LabError: It did not come about.
        """
        self._connections += 1
        self._send.tell("next")
        self._send.wait_for("connected", number=self._connections)

    @property
    def lost(self) -> bool:
        """Whether the connection broke; a stream that merely pauses is not lost."""
        return sum("end" in line for line in self._receive.lines) >= self._connections

    def close(self) -> None:
        """Ends both programs in order."""
        self._send.finish()
        self._receive.kill()

    def kill(self) -> None:
        """Ends both programs at once."""
        self._send.kill()
        self._receive.kill()


class NewConnections:
    """A loop that opens a new connection ten times a second."""

    TIMEOUT = 60.0

    def __init__(self, lab: Lab, client: Guest, server: Guest, port: int) -> None:
        self._answer = GuestProgram(lab, server.name, "answer", port)
        self._answer.wait_for("listening")
        self._connect = GuestProgram(lab, client.name, "connect", server.address, port, self.TIMEOUT)

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Each with `began` (monotonic), `seconds` and `error`."""
        return list(self._connect.lines)

    def close(self) -> None:
        """Ends both programs; attempts under way are waited for."""
        self._connect.finish(timeout=self.TIMEOUT + 10)
        self._answer.kill()

    def kill(self) -> None:
        """Ends both programs at once."""
        self._connect.kill()
        self._answer.kill()
