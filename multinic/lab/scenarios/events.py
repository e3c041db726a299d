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


def unhealthy(events: Iterable[Event], router: RouterState) -> float | None:
    """When the last of the load balancers first called a router unhealthy; None while one has not."""
    first: dict[str, float] = {}
    for event in events:
        detail = event["detail"]
        if event["subject"] == router.key and detail["what"] == "UNHEALTHY" and detail["purpose"] == "traffic":
            first.setdefault(detail["user"], event["time"])
    return max(first.values()) if len(first) >= len(router.health) else None


def stopped(events: Iterable[Event], key: str) -> float | None:
    """When a router's VM first stopped, which its group and load balancers hear of at once; None while it has not."""
    return next((e["time"] for e in events if e["subject"] == key and e["detail"]["what"] == "stopped"), None)


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
