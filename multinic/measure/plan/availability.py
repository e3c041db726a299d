"""How much of a fleet is there for how much of the time."""

from __future__ import annotations

from functools import cache
from math import comb


@cache
def _zone(routers: int, zone: float, vm: float) -> tuple[float, ...]:
    """Probability of 0, 1, … routers of one zone being there."""
    there = [zone * comb(routers, up) * vm**up * (1 - vm) ** (routers - up) for up in range(routers + 1)]
    there[0] += 1 - zone
    return tuple(there)


@cache
def _fleet(zones: int, routers: int, zone: float, vm: float) -> tuple[float, ...]:
    total: tuple[float, ...] = (1.0,)
    one = _zone(routers, zone, vm)
    for _ in range(zones):
        sums = [0.0] * (len(total) + len(one) - 1)
        for i, left in enumerate(total):
            for j, right in enumerate(one):
                sums[i + j] += left * right
        total = tuple(sums)
    return total


def sure(zones: int, routers: int, wanted: float, *, zone: float, vm: float) -> int:
    """The number of routers that are there at least `wanted` of the time.

    Zones fail each by itself, and so do routers: losses of a region, and of the way to it, are not in it.

    Args:
        zones: Number of zones.
        routers: Routers in each.
        wanted: Share of the time, below 1.
        zone: Share of the time that a zone is there.
        vm: Share of the time that a router of a zone that is there forwards.
    """
    chances = _fleet(zones, routers, zone, vm)
    reached = 0.0
    for up in range(len(chances) - 1, 0, -1):
        reached += chances[up]
        if reached >= wanted:
            return up
    return 0
