"""The largest packet that really passes, by probes with "don't fragment", in one direction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from multinic.measure.errors import MeasureError
from multinic.measure.shell import Shell

PROGRAMS = Path(__file__).parents[1] / "programs"
PORT = 5299
SECONDS = 60.0
"""How long a probe may take; its receiver ends by itself then."""


@dataclass(frozen=True)
class Passed:
    """What passed from one place to another.

    Attributes:
        sender: Title of the place that sent.
        receiver: Title of the place that received.
        largest: Bytes of the largest IP packet that arrived whole.
        told: The smallest MTU that an ICMP error named to the sender; None if none came.
        by: Address of who sent it, or ``this host``.
    """

    sender: str
    receiver: str
    largest: int
    told: int | None
    by: str | None

    def black_hole(self, tried: int) -> bool:
        """Whether packets of `tried` bytes vanish without a word: TCP then hangs unless it probes by itself."""
        return self.largest < tried and self.told is None


def program(name: str, *arguments: object) -> list[str]:
    """The command that runs one of `programs/` somewhere else; it needs Python 3.9 there and nothing more."""
    return ["python3", "-c", (PROGRAMS / f"{name}.py").read_text(), *map(str, arguments)]


def version_of(address: str) -> int:
    """IP version of an address."""
    return 6 if ":" in address else 4


def measure(sender: Shell, receiver: Shell, address: str, most: int, *, port: int = PORT) -> Passed:
    """Measures one direction.

    Args:
        sender: Where packets are sent.
        receiver: Where they shall arrive.
        address: The receiver's, as the sender reaches it.
        most: Largest packet to try: the MTU of the sender's NIC.
        port: UDP port of the receiver.

    Raises:
        MeasureError: A program could not be run, or not even a small packet came back.
    """
    version = version_of(address)
    with receiver.start(program("probe_receive", port, version, SECONDS)) as listening:
        try:
            assert listening.stdout is not None and listening.stderr is not None
            if not listening.stdout.readline():
                # The last line of a traceback says what it was.
                said = listening.stderr.read().strip().splitlines()[-1:] or ["it said nothing"]
                raise MeasureError(f"{receiver.title}: the probe cannot listen on UDP port {port}: {said[0][-300:]}")
            text = sender.run(program("probe_send", address, port, version, most), timeout=SECONDS)
        finally:
            listening.kill()
    said = json.loads(text)
    if not said["largest"]:
        raise MeasureError(
            f"{sender.title} → {receiver.title}: no answer from {address}, UDP port {port}: "
            "is it reachable, and does the firewall let the port in?"
        )
    return Passed(sender.title, receiver.title, said["largest"], said["told"], said["by"])
