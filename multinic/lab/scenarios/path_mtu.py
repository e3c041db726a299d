"""The MTU scenarios: one network has a smaller MTU than the other, and senders do not know it.

TCP would learn the smaller one from the other end's MSS; here that end's route says that it takes more, as behind a
tunnel, so that TCP too depends on the router's "fragmentation needed".
"""

from __future__ import annotations

import json

from multinic.lab.errors import LabError
from multinic.lab.guests.exec import run_in_guest
from multinic.lab.scenarios.scenario import Scenario
from multinic.lab.scenarios.stage import Stage
from multinic.lab.scenarios.traffic import PROGRAMS, Guest, GuestProgram

NARROW, WIDE = 1460, 8896
"""The default of a network and the greatest. https://cloud.google.com/vpc/docs/mtu"""
HEADERS = 40
PORT = 5302
HOLD_SECONDS = 2.0


class PathMtu:
    """One of both cases.

    Args:
        narrow: Which network has the small MTU: 0 is the client's, 1 the server's.
    """

    def __init__(self, narrow: int) -> None:
        self._narrow = narrow

    def _ends(self, stage: Stage) -> tuple[Guest, Guest]:
        """The end in the wide network, and the one in the narrow network."""
        ends = stage.client, stage.server
        return ends[1 - self._narrow], ends[self._narrow]

    def prepare(self, stage: Stage) -> None:
        """Tries UDP, before TCP learns anything; and has the narrow end say that it takes what the wide one takes."""
        wide, narrow = self._ends(stage)
        if self._udp(stage, wide, narrow, WIDE) < 2:
            raise LabError(f"UDP from {wide.name}: its first datagram should have been too long, but came through")
        self._udp(stage, narrow, wide, NARROW)
        _set_route(stage, narrow, "default", "advmss", WIDE - HEADERS)
        _forget(stage, wide, narrow, 10)

    def act(self, stage: Stage) -> None:
        """Has the wide end forget the path's MTU; its stream goes on in long packets, and must be told again."""
        wide, narrow = self._ends(stage)
        _require_known(stage, wide, narrow)
        _forget(stage, wide, narrow, 11)
        stage.mark("sender has forgotten the MTU")
        stage.hold(HOLD_SECONDS)
        _require_known(stage, wide, narrow)
        stage.mark("sender was told again")

    def _udp(self, stage: Stage, sender: Guest, receiver: Guest, first: int) -> int:
        """Sends datagrams, the first one of so many bytes, until one is answered; returns how many were sent."""
        echo = GuestProgram(stage.lab, receiver.name, "echo", PORT)
        try:
            echo.wait_for("listening")
            source = (PROGRAMS / "datagrams.py").read_text()
            said = json.loads(_run(stage, sender, "python3", "-c", source, receiver.address, str(PORT), str(first)))
        finally:
            echo.kill()
        if said["mtu"] != NARROW:
            raise LabError(f"UDP from {sender.name}: datagrams of {said['mtu']} bytes came through, not of {NARROW}")
        sent, seconds = int(said["sent"]), said["seconds"]
        stage.say(f"UDP from {sender.name}: {sent} datagrams in {seconds:.2f} s, the path takes {NARROW}")
        return sent


def _run(stage: Stage, guest: Guest, *command: str) -> str:
    return run_in_guest(stage.lab.folder, guest.name, command, timeout=60)


def _set_route(stage: Stage, guest: Guest, destination: str, metric: str, value: int) -> None:
    """Leads to a destination by the guest's gateway as before, with one metric of its own."""
    (default,) = json.loads(_run(stage, guest, "ip", "-json", "route", "show", "default"))
    by = ("via", default["gateway"], "dev", default["dev"])
    _run(stage, guest, "ip", "route", "replace", destination, *by, metric, str(value))


def _forget(stage: Stage, sender: Guest, receiver: Guest, window: int) -> None:
    """Makes a sender forget the path's MTU, which belongs to a route: another one knows nothing yet."""
    _set_route(stage, sender, receiver.address, "initcwnd", window)


def _require_known(stage: Stage, sender: Guest, receiver: Guest) -> None:
    """Raises `LabError` unless the sender's kernel was told the path's MTU."""
    known = _run(stage, sender, "ip", "-oneline", "route", "get", receiver.address)
    if f"mtu {NARROW}" not in known:
        raise LabError(f"{sender.name} was not told that fragmentation is needed: {known.strip()}")


def _scenario(side: str, narrow: int) -> Scenario:
    case = PathMtu(narrow)
    mtus = {narrow: NARROW, 1 - narrow: WIDE}
    return Scenario(
        name=f"narrow-{side}",
        title=f"MTU {NARROW} in the {side}'s network, {WIDE} in the other",
        planned=False,
        why='a sender\'s first long packet is lost and brings "fragmentation needed" from the router, by the NIC that '
        "it came in by; UDP then knows what fits, TCP sends it again in parts at once",
        act=case.act,
        prepare=case.prepare,
        config={
            "multinic:zones": ["us-central1-a"],
            "multinic:networks": [
                {"name": "left", "cidr": "10.10.0.0/24", "mtu": mtus[0]},
                {"name": "right", "cidr": "10.20.0.0/24", "mtu": mtus[1]},
            ],
            "multinic:router": {"replicas": {"min": 1}},
        },
    )


NARROW_SERVER = _scenario("server", 1)
NARROW_CLIENT = _scenario("client", 0)
