"""The panic scenario: kill the router that carries the streams, and see what the connections notice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from multinic.lab.client import Lab, LabError
from multinic.lab.scenarios import memory
from multinic.lab.scenarios.fleet import RouterState, carrier, routers, wait_until_serving
from multinic.lab.scenarios.report import Run
from multinic.lab.scenarios.traffic import SLOW_SECONDS, Guest, NewConnections, Sample, Stream

WARM_UP_SECONDS = 5.0
"""Streams run at least this long before the kill; the plot shows it."""
RANDOM_SECONDS = 10.0
"""The kill comes at a random moment of this span, so that no probe's phase is favoured."""
WHOLE_TIMEOUT_SECONDS = 400.0
Say = Callable[[str], None]


def run(
    lab: Lab,
    region: str,
    client: Guest,
    server: Guest,
    *,
    settings: str,
    engine: str,
    boot_delay: float,
    up_seconds: float,
    say: Say,
) -> Run:
    """Kills one router of a serving fleet under traffic and waits until the fleet is whole again.

    Args:
        lab: A lab in which the fleet already serves.
        region: The fleet's region.
        client: In the first network.
        server: In the second network.
        settings: ``ours`` or ``reference``; noted in the result.
        engine: What ran the program; noted in the result.
        boot_delay: The lab's, in seconds; noted in the result.
        up_seconds: Noted in the result.
        say: Gets a line for each step.

    Raises:
        LabError: The fleet did not become whole, or no stream could be opened.
    """
    fleet = wait_until_serving(lab, region, timeout=60)
    assert lab.process is not None
    own, guests = memory.megabytes(lab.process)
    connections = NewConnections(lab, client, server, port=5300)
    streams: list[Stream] = []
    try:
        victim = _open_streams(lab, fleet, client, server, streams)
        say(f"streams {' and '.join(stream.title for stream in streams)} run through {victim.name}")
        time.sleep(WARM_UP_SECONDS + random.uniform(0, RANDOM_SECONDS))  # noqa: S311 - not a secret
        seen = max((event["number"] for event in lab.events()), default=0)
        killed = time.monotonic()
        lab.act(victim.key, "panic")
        say(f"kernel panic in {victim.name}")
        whole = _wait_until_whole(lab, region, victim, streams, seen, say)
        ended = time.monotonic()
        gaps = {stream.title: stream.longest_gap(killed - WARM_UP_SECONDS, ended) for stream in streams}
        samples = {stream.title: _relative(stream.samples, killed) for stream in streams}
        lost = sum(stream.lost for stream in streams)
        for stream in streams:
            stream.close()
        connections.close()
    except BaseException:
        for stream in streams:
            stream.kill()
        connections.kill()
        raise
    attempts = [attempt for attempt in connections.attempts if attempt["began"] >= killed - WARM_UP_SECONDS]
    events = [event for event in lab.events(seen) if event["subject"] == victim.key and event["time"] <= whole]
    healed, healed_by = _healed(events)
    return Run(
        settings=settings,
        engine=engine,
        boot_delay_s=boot_delay,
        up_s=round(up_seconds, 2),
        longest_gap_s=round(max(gaps.values()), 3),
        gaps_s={title: round(gap, 3) for title, gap in gaps.items()},
        lost_streams=lost,
        failed_connections=sum(attempt["error"] is not None for attempt in attempts),
        slow_connections=sum(attempt["error"] is None and attempt["seconds"] > SLOW_SECONDS for attempt in attempts),
        new_connections=len(attempts),
        detect_s=round(_detected(events) - killed, 2),
        heal_s=round(healed - killed, 2),
        healed_by=healed_by,
        ready_s=round(whole - killed, 2),
        lab_mb=round(own, 1),
        guest_mb=round(max(guests), 1),
        samples=samples,
    )


def _open_streams(
    lab: Lab, fleet: list[RouterState], client: Guest, server: Guest, streams: list[Stream]
) -> RouterState:
    """Opens a stream each way whose data go through one router; returns that router.

    A load balancer picks by a hash of the addresses and ports, so source ports are tried until both agree.
    """
    streams.append(Stream(lab, "client → server", client, server, port=5301, source_port=40001))
    victim = carrier(lab, fleet, nic=0)
    for attempt in range(40):
        back = Stream(lab, "server → client", server, client, port=5400 + attempt, source_port=41000 + attempt)
        if carrier(lab, fleet, nic=1) == victim:
            streams.append(back)
            return victim
        back.close()
    raise LabError(f"of 40 streams from {server.name} to {client.name} none went through {victim.name}")


def _wait_until_whole(lab: Lab, region: str, victim: RouterState, streams: list[Stream], seen: int, say: Say) -> float:
    """Waits until the victim is back and the streams flow; returns when the fleet was whole."""
    deadline = time.monotonic() + WHOLE_TIMEOUT_SECONDS
    whole = None
    while time.monotonic() < deadline:
        for event in lab.events(seen):
            seen = event["number"]
            if event["subject"] == victim.key:
                say(f"{victim.name}: {_told(event)}")
                if event["detail"]["what"] == "booted":
                    whole = 0.0
        if whole == 0.0 and all(router.serving for router in routers(lab, region)):
            whole = time.monotonic()
            say("the fleet is whole again")
        if whole and (all(stream.flows_since(whole) or stream.lost for stream in streams)):
            time.sleep(2)
            return whole
        time.sleep(0.1)
    raise LabError(f"the fleet was not whole {WHOLE_TIMEOUT_SECONDS:.0f} s after the panic")


def _told(event: dict[str, Any]) -> str:
    detail = event["detail"]
    return f"{detail['what']} ({detail['purpose']} check)" if event["kind"] == "health" else str(detail["what"])


def _detected(events: list[dict[str, Any]]) -> float:
    """When the last of the load balancers first called the router unhealthy."""
    first: dict[str, float] = {}
    for event in events:
        detail = event["detail"]
        if detail["what"] == "UNHEALTHY" and detail["purpose"] == "traffic":
            first.setdefault(detail["user"], event["time"])
    return max(first.values())


def _healed(events: list[dict[str, Any]]) -> tuple[float, str]:
    """When the router's VM last booted, and whether it was the old VM or a new one of that name."""
    moment = max(event["time"] for event in events if event["detail"]["what"] == "booted")
    recreated = any(event["detail"]["what"] == "deleted" for event in events)
    return float(moment), "recreated" if recreated else "rebooted"


def _relative(samples: list[Sample], zero: float) -> list[Sample]:
    return [Sample(sample.first - zero, sample.last - zero, sample.bytes) for sample in samples]
