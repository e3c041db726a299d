"""The connections of a scenario: streams each way through known routers, and new connections all the time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios.fleet import RouterState, megabits_in
from multinic.lab.scenarios.gaps import Gap, judge
from multinic.lab.scenarios.traffic import (
    SLOW_SECONDS,
    STREAM_MEGABITS,
    Control,
    Guest,
    NewConnections,
    Sample,
    Stream,
)

WARM_UP_SECONDS = 5.0
"""Streams run at least this long before the event; figures and plot begin here."""
ATTEMPTS = 40
"""Source ports that are tried until a stream goes through the wanted router."""
_numbers = itertools.cycle(range(200))
"""No port is used twice in a while: the one before may still wait for the last segments of its connection."""


class Flows:
    """Live connections between guests.

    Attributes:
        router: The router that carries the first stream when it is opened.
        streams: One each way for each pair of client and server.
        controls: Streams within a guest, which pass no router: their gaps are the machine's own.
        connections: The loops of new connections, from each client to its server.
    """

    def __init__(
        self,
        router: RouterState,
        streams: Sequence[Stream],
        controls: Sequence[Control],
        connections: Sequence[NewConnections],
    ) -> None:
        self.router, self.streams, self.controls, self.connections = router, streams, controls, connections

    @property
    def title(self) -> str:
        """The streams' titles, for people."""
        return " and ".join(stream.title for stream in self.streams)

    def flow_since(self, moment: float) -> bool:
        """Whether every stream that is not lost has brought bytes after this moment."""
        return all(stream.flows_since(moment) or stream.lost for stream in self.streams)

    def finish(self, zero: float, ended: float, changes: Sequence[float]) -> dict[str, Any]:
        """Ends all connections in order and returns what they noticed, as fields of `Figures`.

        Args:
            zero: Moment of the event.
            ended: Until when the streams count.
            changes: Moments at which something changed in the lab.
        """
        began = zero - WARM_UP_SECONDS
        gaps = {stream.title: stream.gaps(began, ended) for stream in self.streams}
        longest = max((found[0] for found in gaps.values()), key=lambda gap: gap.seconds)
        own = [pause for control in self.controls for pause in control.pauses()]
        judged = judge((gap for found in gaps.values() for gap in found), own, changes, zero)
        samples = {stream.title: [_shifted(sample, zero) for sample in stream.samples] for stream in self.streams}
        lost = sum(stream.lost for stream in self.streams)
        for stream in self.streams:
            stream.close()
        for loop in self.connections:
            loop.close()
        attempts = [one for loop in self.connections for one in loop.attempts if one["began"] >= began]
        good = [attempt for attempt in attempts if attempt["error"] is None]
        return {
            "longest_gap_s": round(longest.seconds, 3),
            "caused_gap_s": round(judged.caused, 3),
            "lost_packets_s": sorted(_span(gap, zero) for gap in judged.lost_packets),
            "gap_span_s": _span(longest, zero),
            "gaps_s": {title: round(found[0].seconds, 3) for title, found in gaps.items()},
            "lost_streams": lost,
            "failed_connections": len(attempts) - len(good),
            "slow_connections": sum(attempt["seconds"] > SLOW_SECONDS for attempt in good),
            "new_connections": len(attempts),
            "samples": samples,
        }


def _span(gap: Gap, zero: float) -> tuple[float, float]:
    return round(gap.start - zero, 3), round(gap.end - zero, 3)


def _shifted(sample: Sample, zero: float) -> Sample:
    return Sample(sample.first - zero, sample.last - zero, sample.bytes)


@contextmanager
def opened(
    lab: Lab,
    fleet: Sequence[RouterState],
    pairs: Sequence[tuple[Guest, Guest]],
    *,
    through: Callable[[RouterState], bool] = lambda router: True,
    beside: Callable[[RouterState, RouterState], bool] = lambda first, other: other == first,
) -> Iterator[Flows]:
    """Opens the connections; whatever happens in the block, nothing of them stays.

    Args:
        lab: Where the guests run.
        fleet: The routers that serve.
        pairs: Clients in the first network, each with a server in the second.
        through: Which routers may carry the first stream.
        beside: Given the first stream's router, which routers may carry the others.

    Raises:
        LabError: A guest does not take or answer connections, or no stream went through such a router.
    """
    streams: list[Stream] = []
    controls: list[Control] = []
    loops: list[NewConnections] = []
    try:
        controls.extend(Control(lab, guest) for guest in pairs[0])
        for client, server in pairs:
            loops.append(NewConnections(lab, client, server, port=5300))
        # A load balancer picks by a hash of the addresses and ports: source ports are tried until the router is right.
        first: RouterState | None = None
        for number, (client, server) in enumerate(pairs, 1):
            which = f" {number}" if len(pairs) > 1 else ""
            for nic, (sender, receiver) in enumerate(((client, server), (server, client))):
                title = (f"client{which} → server{which}", f"server{which} → client{which}")[nic]
                fits = through if first is None else _beside(first, beside)
                stream, router = open_through(lab, fleet, title, sender, receiver, nic, fits)
                streams.append(stream)
                first = first or router
        assert first is not None
        yield Flows(first, streams, controls, loops)
    finally:
        for stream in streams:
            stream.kill()
        for control in controls:
            control.kill()
        for loop in loops:
            loop.kill()


def _beside(first: RouterState, beside: Callable[[RouterState, RouterState], bool]) -> Callable[[RouterState], bool]:
    return lambda router: beside(first, router)


def open_through(
    lab: Lab,
    fleet: Sequence[RouterState],
    title: str,
    sender: Guest,
    receiver: Guest,
    nic: int,
    fits: Callable[[RouterState], bool],
    megabits: float = STREAM_MEGABITS,
) -> tuple[Stream, RouterState]:
    """Opens a stream that goes through a router that fits; returns it and its router.

    Args:
        lab: Where the guests run.
        fleet: The routers that serve.
        title: Of the stream.
        sender: From where.
        receiver: To where.
        nic: Of the routers, by which its bytes come in.
        fits: Which routers may carry it.
        megabits: Its pace.

    Raises:
        LabError: None went through such a router.
    """
    before = megabits_in(lab, fleet, nic)
    first = next(_numbers) * ATTEMPTS
    stream = Stream(lab, title, sender, receiver, port=10000 + first, source_port=20000 + first, megabits=megabits)
    try:
        for _ in range(ATTEMPTS):
            more = [now - then for now, then in zip(megabits_in(lab, fleet, nic), before, strict=True)]
            # Other streams vary, too: where none has clearly more, nobody knows.
            if max(more) > megabits / 2 and fits(found := fleet[more.index(max(more))]):
                return stream, found
            stream.reconnect()
    except BaseException:
        stream.kill()
        raise
    stream.kill()
    raise LabError(f"of {ATTEMPTS} streams from {sender.name} to {receiver.name} none went through a fitting router")
