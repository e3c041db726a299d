"""Withdraw and restore: takes a network's routes to the fleet away, the only switch that turns traffic off."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from multinic.operate import records
from multinic.operate.api import Api
from multinic.operate.fleet import Fleet, Hop, Route
from multinic.operate.plan import Plan
from multinic.operate.waiting import Say


def plan(fleet: Fleet, hops: Sequence[Hop]) -> Plan[Route]:
    """What taking the routes of these networks away does."""
    networks = {hop.network for hop in hops}
    gone = {route.name for route in fleet.own_routes if route.network in networks}
    items, changes, traffic, stops = [], [], [], []
    for route in fleet.own_routes:
        if route.network not in networks:
            continue
        items.append(route)
        changes.append(f"delete route {route.title}, and keep it as {records.record_of(route).name}")
        other = next_best(fleet, route, gone)
        if other is None:
            stops.append(f"{route.network} to {route.destination}")
            traffic.append(f"from {route.network} to {route.destination}: dropped")
        else:
            traffic.append(f"from {route.network} to {route.destination}: goes on by route {other.name}")
    idle = [
        f"network {hop.network} has no route to the fleet"
        + (" (withdrawn already)" if any(r.network == hop.network for r, _ in records.withdrawn(fleet)) else "")
        for hop in hops
        if not any(route.network == hop.network for route in items)
    ]
    return Plan(
        items=tuple(items),
        changes=tuple(changes),
        idle=tuple(idle),
        traffic=tuple(traffic),
        warnings=("`pulumi up --refresh` brings the routes back; before `pulumi destroy`, run `multinic restore`",)
        if items
        else (),
        refusal=f"nothing takes over: {'; '.join(stops)} would stop" if stops else "",
    )


def apply(api: Api, fleet: Fleet, items: Sequence[Route], say: Say) -> None:
    """Takes routes away; the record of each is there first.

    Raises:
        OperateError: An API's refusal; what was done before is recorded, and the command can be given again.
    """
    for route in items:
        records.insert(api, records.record_of(route), fleet.routes)
        records.delete(api, route)
        say(f"withdrew {route.title}")


def plan_restore(fleet: Fleet, hops: Sequence[Hop]) -> Plan[Route]:
    """What putting the withdrawn routes of these networks back does; the items are the records."""
    networks = {hop.network for hop in hops}
    found = [(record, route) for record, route in records.withdrawn(fleet) if record.network in networks]
    there = {(route.project, route.name) for route in fleet.routes}
    changes, warnings = [], []
    for record, route in found:
        if (route.project, route.name) in there:
            changes.append(f"delete {record.name}: route {route.title} is back already")
            continue
        changes.append(f"make route {route.title} again")
        rival = next((r for r in fleet.own_routes if _same_place(r, route) and r.priority == route.priority), None)
        if rival is not None:
            warnings.append(f"{rival.name} has the same destination and priority as {route.name}")
    sick = [network for network in sorted(networks) if found and not fleet.healthy(network)]
    missing = {record.network for record, _ in found}
    return Plan(
        items=tuple(record for record, _ in found),
        changes=tuple(changes),
        idle=tuple(f"network {hop.network} has no withdrawn route" for hop in hops if hop.network not in missing),
        traffic=tuple(f"from {route.network} to {route.destination}: by this fleet again" for _, route in found),
        warnings=tuple(warnings),
        refusal=f"network {', '.join(sick)} has no healthy router, and would send to all of them" if sick else "",
    )


def apply_restore(api: Api, fleet: Fleet, items: Sequence[Route], say: Say) -> None:
    """Makes the routes of these records again, and deletes the records.

    Raises:
        OperateError: An API's refusal; the records of the rest stay, and the command can be given again.
    """
    for record in items:
        route = records.original_of(record)
        assert route is not None
        if not any((one.project, one.name) == (route.project, route.name) for one in fleet.routes):
            records.insert(api, route, fleet.routes)
        records.delete(api, record)
        say(f"restored {route.title}")


def next_best(fleet: Fleet, route: Route, gone: set[str]) -> Route | None:
    """The route that takes over for all VMs when these are gone: as wide, untagged or of the same tags."""
    wide = IPv4Network(route.destination)
    found = [
        other
        for other in fleet.routes
        if other.name not in gone
        and other.network_link == route.network_link
        and other.next_hop
        and "/gateways/" not in other.next_hop
        and not other.warnings
        and (not other.tags or (route.tags and set(route.tags) <= set(other.tags)))
        and wide.subnet_of(IPv4Network(other.destination))
    ]
    return min(found, key=lambda other: (-IPv4Network(other.destination).prefixlen, other.priority), default=None)


def _same_place(one: Route, other: Route) -> bool:
    return (one.network_link, one.destination, one.tags) == (other.network_link, other.destination, other.tags)
