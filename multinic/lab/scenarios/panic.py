"""The panic scenario: kill the router that carries the streams, and see what the connections notice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from multinic.lab.client import Lab
from multinic.lab.errors import LabError
from multinic.lab.scenarios import flows, memory
from multinic.lab.scenarios.fleet import routers, wait_until_serving
from multinic.lab.scenarios.flows import WARM_UP_SECONDS, Flows
from multinic.lab.scenarios.report import Run
from multinic.lab.scenarios.traffic import Guest

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
    with flows.opened(lab, fleet, client, server) as live:
        victim = live.router
        say(f"streams {live.title} run through {victim.name}")
        time.sleep(WARM_UP_SECONDS + random.uniform(0, RANDOM_SECONDS))  # noqa: S311 - not a secret
        seen = lab.last_event()
        killed = time.monotonic()
        lab.act(victim.key, "panic")
        say(f"kernel panic in {victim.name}")
        whole = _wait_until_whole(lab, region, victim.key, live, seen, say)
        noticed = live.finish(killed, time.monotonic())
    events = [event for event in lab.events(seen) if event["subject"] == victim.key and event["time"] <= whole]
    healed, healed_by = _healed(events)
    return Run(
        settings=settings,
        engine=engine,
        boot_delay_s=boot_delay,
        up_s=round(up_seconds, 2),
        detect_s=round(_detected(events) - killed, 2),
        heal_s=round(healed - killed, 2),
        healed_by=healed_by,
        ready_s=round(whole - killed, 2),
        lab_mb=round(own, 1),
        guest_mb=round(max(guests), 1),
        **noticed,
    )


def _wait_until_whole(lab: Lab, region: str, victim: str, live: Flows, seen: int, say: Say) -> float:
    """Waits until the victim is back and the streams flow; returns when the fleet was whole."""
    deadline = time.monotonic() + WHOLE_TIMEOUT_SECONDS
    whole = None
    while time.monotonic() < deadline:
        for event in lab.events(seen):
            seen = event["number"]
            if event["subject"] == victim:
                say(f"{victim.rpartition('/')[2]}: {told(event)}")
                if event["detail"]["what"] == "booted":
                    whole = 0.0
        if whole == 0.0 and all(router.serving for router in routers(lab, region)):
            whole = time.monotonic()
            say("the fleet is whole again")
        if whole and live.flow_since(whole):
            time.sleep(2)
            return whole
        time.sleep(0.1)
    raise LabError(f"the fleet was not whole {WHOLE_TIMEOUT_SECONDS:.0f} s after the panic")


def told(event: dict[str, Any]) -> str:
    """An event of a router, for people."""
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
