"""Upgrade by two generations: the second fleet's routes win, and after a while the first one's are withdrawn.

The program's own routes are not changed: the cut-over is made by temporary copies of the second fleet's routes with a
smaller priority, so that going back is to delete them again. What has been done is read from the routes themselves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from multinic.operate import records, withdraw
from multinic.operate.api import Api
from multinic.operate.errors import StoppedError, WordError
from multinic.operate.fleet import Fleet, Route
from multinic.operate.plan import Plan
from multinic.operate.reading import Reader
from multinic.operate.waiting import Say


@dataclass(frozen=True)
class Check:
    """Something that must be so before traffic is moved."""

    what: str
    good: bool
    cure: str = ""


@dataclass(frozen=True)
class Pair:
    """The two generations: `old` carries the traffic before the upgrade, `new` after it."""

    old: Fleet
    new: Fleet

    @property
    def rivals(self) -> list[tuple[Route, Route]]:
        """(old route, new route) of one network and destination, the temporary copies left out."""
        found = []
        for mine in self.old.own_routes:
            for other in self.new.own_routes:
                same = (mine.network_link, mine.destination) == (other.network_link, other.destination)
                if same and not temporary(mine) and not temporary(other):
                    found.append((mine, other))
        return found

    @property
    def copies(self) -> tuple[Route, ...]:
        """The temporary routes of the cut-over that are there."""
        return tuple(route for route in self.new.own_routes if temporary(route))

    def leads(self) -> bool:
        """Whether the new fleet's routes win in every network, or the old one's are gone."""
        copied = {(route.network_link, route.destination) for route in self.copies}
        return all(
            new.priority < old.priority or (old.network_link, old.destination) in copied for old, new in self.rivals
        )


def temporary(route: Route) -> bool:
    """Whether a route is a cut-over's copy."""
    return route.description.startswith(records.CUT_OVER)


def read(reader: Reader, old: str, new: str) -> Pair:
    """Reads both fleets.

    Args:
        reader: Of the region.
        old: Name of the fleet that carries the traffic; empty for whichever does.
        new: Name of the other one; empty for it.

    Raises:
        WordError: There are no two fleets of the same networks, or not these.
    """
    # One load balancer alone is somebody's ordinary service.
    fleets = [fleet for fleet in reader.fleets() if len(fleet.hops) > 1]
    names = ", ".join(fleet.name for fleet in fleets) or "none"
    if len(fleets) < 2:
        count = f"one fleet only ({names})" if fleets else "no fleet"
        raise WordError(
            f"region {reader.where.region} has {count}: declare a second router with another "
            "`generation` and a greater `routes.priority` first (docs/upgrade.md)"
        )
    for name in (old, new):
        if name and name not in [fleet.name for fleet in fleets]:
            raise WordError(f"region {reader.where.region} has no fleet {name}; it has {names}")
    if len(fleets) > 2 and not (old and new):
        raise WordError(f"region {reader.where.region} has more than two fleets ({names}): give --old and --new")
    chosen = [fleet for fleet in fleets if not (old and new) or fleet.name in (old, new)]
    if len(chosen) != 2:
        raise WordError(f"--old and --new are the same fleet; there are {names}")
    first, second = reader.whole(chosen[0]), reader.whole(chosen[1])
    pair = Pair(first, second)
    if old:
        swap = second.name == old
    elif new:
        swap = first.name == new
    else:
        # A cut-over under way, or routes that lead, or routes that are withdrawn, tell which one is the new fleet.
        swap = bool(Pair(second, first).copies) or bool(not pair.copies and _carries(second, first))
    return Pair(second, first) if swap else pair


def _carries(one: Fleet, other: Fleet) -> bool:
    """Whether the first of two fleets carries the traffic."""
    if bool(one.own_routes) != bool(other.own_routes):
        return bool(records.withdrawn(one)) if not one.own_routes else not records.withdrawn(other)
    rivals = Pair(one, other).rivals
    return bool(rivals) and all(mine.priority < theirs.priority for mine, theirs in rivals)


def checks(pair: Pair) -> list[Check]:
    """What must be so before traffic is moved to the new fleet."""
    old, new = pair.old, pair.new
    found = [
        Check(
            f"both fleets have the networks {', '.join(old.networks)}",
            {hop.network_link for hop in old.hops} == {hop.network_link for hop in new.hops},
            f"{new.name} has {', '.join(new.networks)}",
        )
    ]
    wanted = {(route.network, route.destination) for route in old.own_routes}
    wanted |= {(route.network, route.destination) for _, route in records.withdrawn(old)}
    have = {(route.network, route.destination) for route in new.own_routes}
    missing = sorted(f"{network}: {destination}" for network, destination in wanted - have)
    found.append(
        Check(
            f"{new.name} has a route for every range that {old.name} has one for",
            not missing,
            f"missing: {', '.join(missing)}; declare the same cidrs",
        )
    )
    for network in new.networks:
        serving = [router.name for router in new.healthy(network) if router.stays]
        cure = f"`multinic status --fleet {new.name}` shows why"
        found.append(
            Check(
                f"{len(serving)} of {len(new.routers)} routers of {new.name} are healthy in {network}",
                bool(serving) and len(serving) == len(new.routers),
                cure,
            )
        )
    found.append(
        Check(
            f"{new.name} has as many routers as {old.name} ({len(new.routers)}, {len(old.routers)})",
            len(new.routers) >= len(old.routers),
            "let its `replicas.min` be the size that the load needs now",
        )
    )
    busy = [group.zone for group in new.groups if group.actions]
    found.append(Check(f"no rollout runs in {new.name}", not busy, f"wait until {', '.join(busy)} is done"))
    narrow = [old_route for old_route, _ in pair.rivals if old_route.priority == 0]
    found.append(
        Check(
            f"there is a priority better than {old.name}'s",
            not narrow or pair.leads(),
            "its routes have priority 0: give them a greater one",
        )
    )
    return found


def plan_cut_over(pair: Pair) -> Plan[Route]:
    """Temporary copies of the new fleet's routes, with a priority that wins."""
    items = []
    for old, new in pair.rivals:
        if new.priority > old.priority and not any(
            (copy.network_link, copy.destination) == (old.network_link, old.destination) for copy in pair.copies
        ):
            copy = replace(
                new,
                name=records.derived(new.name, "cut-over"),
                priority=old.priority - 1,
                description=f"{records.CUT_OVER}{pair.new.name}",
                warnings=(),
            )
            items.append(copy)
    return Plan(
        items=tuple(items),
        changes=tuple(f"make route {route.title}" for route in items),
        idle=() if items else (f"the routes of {pair.new.name} win already",),
        traffic=(f"all of it moves to {pair.new.name} at once; connections that are open go on",) if items else (),
    )


def apply_cut_over(api: Api, pair: Pair, items: Sequence[Route], say: Say) -> None:
    """Makes the copies.

    Raises:
        OperateError: An API's refusal; the command can be given again, or ``--back``.
    """
    for route in items:
        records.insert(api, route, pair.new.routes)
        say(f"made {route.title}")


def watch(reader: Reader, pair: Pair, say: Say, *, seconds: float) -> None:
    """Watches the new fleet for a while.

    Raises:
        StoppedError: One of its networks lost its last healthy router, or a third of its routers.
    """
    began, new, told = time.monotonic(), pair.new, 0.0
    before = {network: len(new.healthy(network)) for network in new.networks}
    while (passed := time.monotonic() - began) < seconds:
        new = reader.members(new)
        for network in new.networks:
            now = len(new.healthy(network))
            if not now or (now * 3 <= before[network] * 2 and now < before[network]):
                raise StoppedError(
                    f"health dropped: {now} of {before[network]} routers of {new.name} are healthy in {network}; "
                    "`multinic upgrade --back` moves the traffic to the old fleet again"
                )
        if passed - told >= 10 or not told:
            told = passed or 0.001
            say(f"{new.name} carries the traffic, {passed:.0f} of {seconds:.0f} s")
        time.sleep(min(reader.api.door.pause, max(0.0, seconds - passed)))


def plan_withdraw(pair: Pair) -> Plan[Route]:
    """The old fleet's routes are withdrawn, then the copies are not needed any more."""
    plan = withdraw.plan(pair.old, pair.old.hops)
    copies = pair.copies
    return replace(
        plan,
        changes=(*plan.changes, *(f"delete route {route.title}" for route in copies)),
        idle=() if plan.items or copies else (f"the routes of {pair.old.name} are withdrawn already",),
        traffic=("none: it goes by the new fleet, before and after",) if plan.items or copies else (),
        refusal="" if pair.leads() else f"the routes of {pair.new.name} do not win yet",
    )


def apply_withdraw(api: Api, pair: Pair, items: Sequence[Route], say: Say) -> None:
    """Withdraws the old fleet's routes and deletes the copies.

    Raises:
        OperateError: An API's refusal; the command can be given again.
    """
    withdraw.apply(api, pair.old, items, say)
    for route in pair.copies:
        records.delete(api, route)
        say(f"deleted {route.title}")


def plan_back(pair: Pair) -> Plan[Route]:
    """The way back: the old fleet's routes are restored, then the copies deleted."""
    restored = withdraw.plan_restore(pair.old, pair.old.hops)
    changes = [*restored.changes, *(f"delete route {route.title}" for route in pair.copies)]
    blocked = [new.title for old, new in pair.rivals if new.priority < old.priority]
    return Plan(
        items=restored.items,
        changes=tuple(changes),
        idle=() if changes else (f"{pair.old.name} has its routes, and nothing is cut over",),
        traffic=(f"all of it moves to {pair.old.name} at once; connections that are open go on",) if changes else (),
        warnings=tuple(f"{title} wins by its own priority: change that in the program" for title in blocked),
        refusal=restored.refusal,
    )


def apply_back(api: Api, pair: Pair, items: Sequence[Route], say: Say) -> None:
    """Restores the old fleet's routes and deletes the copies.

    Raises:
        OperateError: An API's refusal; the command can be given again.
    """
    withdraw.apply_restore(api, pair.old, items, say)
    for route in pair.copies:
        records.delete(api, route)
        say(f"deleted {route.title}")
