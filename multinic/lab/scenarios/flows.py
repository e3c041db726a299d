"""The connections of a scenario: a stream each way through one router, and new connections all the time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios.fleet import RouterState, carrier
from multinic.lab.scenarios.traffic import SLOW_SECONDS, Guest, NewConnections, Sample, Stream

WARM_UP_SECONDS = 5.0
"""Streams run at least this long before the event; figures and plot begin here."""
ATTEMPTS = 40
"""Source ports that are tried until a stream goes through the wanted router."""
_numbers = itertools.count()
"""No port is used twice: the one before may still wait for the last segments of its connection."""


class Flows:
    """Live connections between two guests.

    Attributes:
        router: The router that carries both streams when they are opened.
        streams: One each way.
        connections: The loop of new connections.
    """

    def __init__(self, router: RouterState, streams: list[Stream], connections: NewConnections) -> None:
        self.router, self.streams, self.connections = router, streams, connections

    @property
    def title(self) -> str:
        """The streams' titles, for people."""
        return " and ".join(stream.title for stream in self.streams)

    def flow_since(self, moment: float) -> bool:
        """Whether every stream that is not lost has brought bytes after this moment."""
        return all(stream.flows_since(moment) or stream.lost for stream in self.streams)

    def finish(self, zero: float, ended: float) -> dict[str, Any]:
        """Ends all connections in order and returns what they noticed, as fields of `Figures`.

        Args:
            zero: Moment of the event.
            ended: Until when the streams count.
        """
        began = zero - WARM_UP_SECONDS
        gaps = {stream.title: stream.longest_gap(began, ended) for stream in self.streams}
        samples = {stream.title: [_shifted(sample, zero) for sample in stream.samples] for stream in self.streams}
        lost = sum(stream.lost for stream in self.streams)
        for stream in self.streams:
            stream.close()
        self.connections.close()
        attempts = [attempt for attempt in self.connections.attempts if attempt["began"] >= began]
        good = [attempt for attempt in attempts if attempt["error"] is None]
        return {
            "longest_gap_s": round(max(gaps.values()), 3),
            "gaps_s": {title: round(gap, 3) for title, gap in gaps.items()},
            "lost_streams": lost,
            "failed_connections": len(attempts) - len(good),
            "slow_connections": sum(attempt["seconds"] > SLOW_SECONDS for attempt in good),
            "new_connections": len(attempts),
            "samples": samples,
        }


def _shifted(sample: Sample, zero: float) -> Sample:
    return Sample(sample.first - zero, sample.last - zero, sample.bytes)


@contextmanager
def opened(
    lab: Lab,
    fleet: list[RouterState],
    client: Guest,
    server: Guest,
    *,
    through: Callable[[RouterState], bool] = lambda router: True,
) -> Iterator[Flows]:
    """Opens the connections; whatever happens in the block, nothing of them stays.

    Args:
        lab: Where the guests run.
        fleet: The routers that serve.
        client: In the first network.
        server: In the second network.
        through: Which routers may carry the streams.

    Raises:
        LabError: A guest does not take or answer connections, or no stream went through such a router.
    """
    connections = NewConnections(lab, client, server, port=5300)
    streams: list[Stream] = []
    try:
        # A load balancer picks by a hash of the addresses and ports: source ports are tried until the router is right.
        first = _open(lab, fleet, client, server, 0, through, streams)
        _open(lab, fleet, server, client, 1, lambda router: router == first, streams)
        yield Flows(first, streams, connections)
    finally:
        for stream in streams:
            stream.kill()
        connections.kill()


def _open(
    lab: Lab,
    fleet: list[RouterState],
    sender: Guest,
    receiver: Guest,
    nic: int,
    through: Callable[[RouterState], bool],
    streams: list[Stream],
) -> RouterState:
    title = ("client → server", "server → client")[nic]
    for _ in range(ATTEMPTS):
        number = next(_numbers)
        stream = Stream(lab, title, sender, receiver, port=10000 + number, source_port=20000 + number)
        streams.append(stream)
        found = carrier(lab, fleet, nic)
        if through(found):
            return found
        streams.remove(stream)
        stream.close()
    raise LabError(f"of {ATTEMPTS} streams from {sender.name} to {receiver.name} none went through a fitting router")
