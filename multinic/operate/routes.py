"""The static routes that lead to a fleet, what is wrong with them, and what has been left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multinic.operate import records
from multinic.operate.api import Api
from multinic.operate.fleet import Fleet, Route
from multinic.operate.plan import Plan
from multinic.operate.waiting import Say
from multinic.operate.withdraw import next_best


@dataclass(frozen=True)
class Row:
    """A route as it is shown.

    Attributes:
        route: The route; for a withdrawn one, as it was.
        state: ``in force``, ``withdrawn``, ``cut-over`` or ``dead`` (its load balancer is gone).
        warnings: Google Cloud's, and ours.
    """

    route: Route
    state: str
    warnings: tuple[str, ...]


def rows(fleet: Fleet) -> list[Row]:
    """All routes that lead, led, or were to lead to the fleet."""
    found = []
    for route in fleet.routes:
        original = records.original_of(route)
        if original is not None:
            if fleet.own(original):
                back = any(other.name == original.name for other in fleet.routes)
                found.append(Row(original, "withdrawn", ("the route is back: --cleanup",) if back else ()))
        elif fleet.own(route):
            state = "cut-over" if route.description.startswith(records.CUT_OVER) else "in force"
            found.append(Row(route, state, (*route.warnings, *_our_warnings(fleet, route))))
        elif dead(route):
            found.append(Row(route, "dead", route.warnings))
    return found


def _our_warnings(fleet: Fleet, route: Route) -> list[str]:
    hop = fleet.hop_of(route)
    assert hop is not None
    found = []
    if hop.protocol == "L3_DEFAULT":
        found.append("NEXT_HOP_DROPS: a forwarding rule with protocol L3_DEFAULT drops what a route sends to it")
    if not fleet.healthy(hop.network):
        found.append("NO_HEALTHY_ROUTER: the load balancer sends to all of them")
    same = [
        other
        for other in fleet.routes
        if other.name != route.name
        and (other.network_link, other.destination, other.priority, other.tags)
        == (route.network_link, route.destination, route.priority, route.tags)
    ]
    found.extend(f"SAME_PRIORITY: {other.name} has the same destination; Google Cloud picks one" for other in same)
    return found


def dead(route: Route) -> bool:
    """Whether a route's next hop is a load balancer that is gone."""
    balancer = "/forwardingRules/" in route.next_hop or route.next_hop.count(".") == 3
    return balancer and any(warning.startswith("NEXT_HOP") for warning in route.warnings)


def plan_delete_warnings(fleet: Fleet) -> Plan[Route]:
    """Deletes the routes whose load balancer is gone: what they catch is dropped."""
    items = tuple(row.route for row in rows(fleet) if row.state == "dead")
    return Plan(
        items=items,
        changes=tuple(f"delete route {route.title}: {'; '.join(route.warnings)}" for route in items),
        idle=() if items else ("no route's load balancer is gone",),
        traffic=("what these routes catch is dropped now; afterwards the next best route has it",) if items else (),
    )


def plan_cleanup(fleet: Fleet) -> Plan[Route]:
    """Deletes what withdraw and upgrade left and nobody needs any more."""
    found = [(route, reason) for route in fleet.routes if (reason := _left_over(fleet, route))]
    return Plan(
        items=tuple(route for route, _ in found),
        changes=tuple(f"delete {route.name}: {reason}" for route, reason in found),
        idle=() if found else ("nothing is left over",),
        traffic=("none: no packet goes by these routes, or the same way without them",) if found else (),
    )


def _left_over(fleet: Fleet, route: Route) -> str:
    """Why a route is not needed any more; empty if it is, or is none of ours."""
    original = records.original_of(route)
    if original is not None:
        if any(other.name == original.name for other in fleet.routes):
            return "the route that it stands for is back"
        here = original.next_hop.startswith(f"projects/{fleet.project}/regions/{fleet.region}/")
        gone = here and original.next_hop not in fleet.rules
        return "the load balancer of the route that it stands for is gone" if gone else ""
    if route.description.startswith(records.CUT_OVER) and fleet.own(route):
        following = next_best(fleet, route, {route.name})
        return "the fleet's own route has taken over" if following is not None and fleet.own(following) else ""
    return ""


def apply_delete(api: Api, items: Sequence[Route], say: Say) -> None:
    """Deletes routes.

    Raises:
        OperateError: An API's refusal.
    """
    for route in items:
        records.delete(api, route)
        say(f"deleted {route.title}")
