"""The lab's log of events, read for what it says about a router."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from multinic.lab.scenarios.fleet import RouterState

Event = dict[str, Any]


def told(event: Event) -> str:
    """An event of a router, for people."""
    detail = event["detail"]
    return f"{detail['what']} ({detail['purpose']} check)" if event["kind"] == "health" else str(detail["what"])


def known_down(events: Iterable[Event], router: RouterState) -> float | None:
    """When the last of its load balancers knew that a router is down; None while one does not.

    Each hears it from its traffic check, or from the VM's stop, of which all hear at once: whichever is first.
    """
    first: dict[str, float] = {}
    for event in events:
        if event["subject"] != router.key:
            continue
        detail = event["detail"]
        if detail["what"] == "stopped":
            return float(event["time"])
        if detail["what"] == "UNHEALTHY" and detail["purpose"] == "traffic":
            first.setdefault(detail["user"], event["time"])
            if len(first) >= len(router.health):
                return float(event["time"])
    return None


def rules_changed(events: Iterable[Event], since: float) -> float | None:
    """When the packets' rules first changed after a moment."""
    return next((e["time"] for e in events if e["kind"] == "network" and e["time"] >= since), None)


def healed(events: Iterable[Event]) -> tuple[float, str] | None:
    """When a router's VM last booted, and whether it was the old VM or a new one of that name; None while it has not.

    Args:
        events: Of that router only, since it failed.
    """
    known = list(events)
    moments = [event["time"] for event in known if event["detail"]["what"] == "booted"]
    recreated = any(event["detail"]["what"] == "deleted" for event in known)
    return (moments[-1], "recreated" if recreated else "rebooted") if moments else None
