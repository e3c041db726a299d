"""From what is asked for to the cheapest fleet that can do it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from multinic.lab.scenarios.report import LADDER_SECONDS
from multinic.machines import VCPUS_PER_GBPS, cpu_target
from multinic.measure.errors import MeasureError, WordError
from multinic.measure.mtu.encapsulation import ETHERNET, tcp_share
from multinic.measure.plan.availability import sure
from multinic.measure.plan.limits import Limits, Type

GIB = 2**30
MOST_ZONES = 10
"""No region has so many: 3 or 4 are usual."""
MEASURED_MTU = 1460
VCPUS_PER_PACKET = VCPUS_PER_GBPS * 8 * (MEASURED_MTU + ETHERNET) / 1e9
"""What the routers' CPU was measured with: full packets at this MTU."""
FEWEST_STREAMS_PER_ROUTER = 10
"""Below it the hash spreads streams so unevenly that routers idle while others are full."""


@dataclass(frozen=True)
class Demand:
    """What is asked for.

    Attributes:
        gbps: TCP payload through the routers, both directions together, Gbit/s.
        packets: Packets a second, both directions together; 0 follows from `gbps` and `mtu`.
        availability: Share of the time for which that shall be possible.
        peak: What the autoscalers shall be able to reach, Gbit/s; 0 is twice `gbps`.
        per_stream: What one stream must get, Gbit/s; 0 asks nothing.
        streams: How many streams there are at the same time; 0 is not known, and taken as many.
        mtu: Of the networks.
        networks: Number of networks, a NIC each.
        zones: Zones of the region that may be used.
        zone_count: Use just so many; 0 chooses.
        machine: Use this machine type; empty chooses.
        tier_1: Tier_1 networking may be used; its own charge is not in the cost.
        interval: Seconds between traffic checks.
        timeout: Seconds after which a check has failed.
        unhealthy: Failed checks after which a router gets no more connections.
    """

    gbps: float
    packets: float = 0
    availability: float = 0.999
    peak: float = 0
    per_stream: float = 0
    streams: int = 0
    mtu: int = 1460
    networks: int = 2
    zones: int = 3
    zone_count: int = 0
    machine: str = ""
    tier_1: bool = False
    interval: float = 1
    timeout: float = 1
    unhealthy: int = 2

    def problems(self) -> list[str]:
        """Everything that cannot be, at once."""
        found = []
        if not 0 < self.gbps < 100_000:
            found.append(f"gbps: {self.gbps:g}; more than 0 and less than 100000 are needed")
        if not 0 <= self.packets < 1e15:
            found.append(f"packets: {self.packets:g}; a number of packets a second is needed")
        if not 0 < self.availability < 1:
            found.append(
                f"availability: {self.availability:g}; a share such as 0.9995 is needed, never all of the time"
            )
        if self.peak and not self.gbps <= self.peak < 100_000:
            what = "is less than" if self.peak < self.gbps else "cannot be beside"
            found.append(f"peak: {self.peak:g} {what} the {self.gbps:g} Gbit/s asked for")
        if not 1300 <= self.mtu <= 8896:
            found.append(f"mtu: {self.mtu}; Google Cloud takes 1300 to 8896")
        if not 2 <= self.networks <= 8:
            found.append(f"networks: {self.networks}; 2 to 8 are possible")
        if self.zone_count > self.zones or not 1 <= self.zones <= MOST_ZONES:
            found.append(f"zones: {max(self.zone_count, 1)} of {self.zones} cannot be used; 1 to {MOST_ZONES} can")
        if not 0 <= self.per_stream < 100_000 or self.streams < 0:
            found.append("per_stream and streams: must be numbers, and not negative")
        if not 0 < self.timeout <= self.interval:
            found.append(
                f"check: a timeout of {self.timeout:g} s in an interval of {self.interval:g} s; it must fit in"
            )
        if not 1 <= self.unhealthy <= 10:
            found.append(f"check: {self.unhealthy} failures; 1 to 10 are possible")
        return found


@dataclass(frozen=True)
class Bound:
    """What one limit allows.

    Attributes:
        name: The limit.
        allows: What a router could do if there were no other limit, Gbit/s of TCP payload.
        text: How that comes about.
        source: Where the limit comes from.
    """

    name: str
    allows: float
    text: str
    source: str


@dataclass(frozen=True)
class Plan:
    """A fleet that can do what is asked for.

    Attributes:
        demand: What that was.
        type: Machine type.
        zones: Number of zones.
        least: Routers a zone, always.
        most: Routers a zone at the peak.
        router: What one router carries, Gbit/s of TCP payload.
        router_packets: What one router carries, packets/s.
        stream: What one stream gets at most, Gbit/s.
        sure: Routers that are there for the share of time that was asked for.
        bounds: The limits of one router, the one that binds first.
        cpu: Share of a router's CPU that this takes.
        target: CPU target of the autoscalers.
        detect: Seconds until a lost router gets no more traffic.
        pause: Longest pause of connections through it, seconds.
        monthly: Cost in US dollars of the least fleet.
        monthly_most: Cost if the peak lasted all month.
    """

    demand: Demand
    type: Type
    zones: int
    least: int
    most: int
    router: float
    router_packets: float
    stream: float
    sure: int
    bounds: tuple[Bound, ...]
    cpu: float
    target: float
    detect: float
    pause: float
    monthly: float
    monthly_most: float

    @property
    def routers(self) -> int:
        """Routers of the least fleet."""
        return self.zones * self.least

    @property
    def capacity(self) -> float:
        """Gbit/s of TCP payload for the share of time that was asked for."""
        return self.sure * self.router

    @property
    def packets(self) -> float:
        """Packets/s for the share of time that was asked for."""
        return self.sure * self.router_packets

    @property
    def expected(self) -> float:
        """What so many streams get in total when all routers are there: the hash leaves some routers without any."""
        if not self.demand.streams:
            return self.routers * self.router
        used = self.routers * (1 - (1 - 1 / self.routers) ** self.demand.streams)
        return min(used * self.router, self.demand.streams * self.stream)


def plan(demand: Demand, limits: Limits) -> list[Plan]:
    """Every machine type's cheapest fleet that can do it, cheapest first.

    Raises:
        MeasureError: The demand cannot be met, or makes no sense; with every reason.
    """
    if problems := demand.problems():
        raise WordError("; ".join(problems))
    flow = limits.number("flow", "gbps")
    if demand.per_stream > flow:
        raise MeasureError(
            f"a stream of {demand.per_stream:g} Gbit/s: one flow gets {flow:g} Gbit/s, whatever the number of routers "
            f"({limits.source('flow')})"
        )
    types = [one for one in limits.types(tier_1=demand.tier_1) if demand.machine in ("", one.machine.name)]
    if not types:
        raise MeasureError(f"machine {demand.machine!r} has no price or no known bandwidth in the data file")
    found, reasons = [], []
    for one in types:
        for zones in [demand.zone_count] if demand.zone_count else range(1, demand.zones + 1):
            fitted = _fit(demand, one, zones, limits)
            if isinstance(fitted, Plan):
                found.append(fitted)
            else:
                reasons.append(fitted)
    if not found:
        # The last ones are of the dearest machines, which can do the most.
        raise MeasureError(f"no fleet can do this: {'; '.join(list(dict.fromkeys(reasons))[-3:])}")
    best: dict[str, Plan] = {}
    for each in sorted(found, key=_order):
        best.setdefault(each.type.name, each)
    return list(best.values())


def _order(found: Plan) -> tuple[float, int, int, str]:
    return round(found.monthly, 6), found.routers, found.zones, found.type.name


def packet_payload(mtu: int) -> float:
    """Payload bytes of a full TCP packet."""
    return tcp_share(mtu) * (mtu + ETHERNET)


def bounds(one: Type, demand: Demand, limits: Limits) -> list[Bound]:
    """What each limit allows one router, the tightest first."""
    share = min(limits.number("vm", "reached"), tcp_share(demand.mtu))
    packets = one.vcpus * limits.number("packets", "per_vcpu")
    payload = demand.gbps * 1e9 / 8 / _packets(demand)
    found = [
        Bound(
            "bytes of a VM",
            one.gbps * share,
            f"{one.gbps:g} Gbit/s a VM{' with Tier_1' if one.tier_1 else ''}, all NICs together, of which {share:.3f} "
            f"is reached as TCP payload",
            limits.source("vm"),
        ),
        Bound(
            "packets of a VM",
            packets * payload * 8 / 1e9,
            f"{packets:,.0f} packets/s ({one.vcpus} vCPUs), {payload:.0f} bytes of payload in each",
            limits.source("packets"),
        ),
        Bound(
            "CPU of a VM",
            one.vcpus / VCPUS_PER_PACKET * payload * 8 / 1e9,
            f"{VCPUS_PER_GBPS:g} vCPU for each Gbit/s in packets of {MEASURED_MTU} bytes; here {payload:.0f} bytes of "
            "payload in each",
            "docs/AUTOSCALER.md of terraform-google-multinic, 2020; multinic/machines.py",
        ),
    ]
    return sorted(found, key=lambda each: each.allows)


def _packets(demand: Demand) -> float:
    """Packets a second that come with the Gbit/s: at least full packets."""
    return max(demand.packets, demand.gbps * 1e9 / 8 / packet_payload(demand.mtu))


def _fit(demand: Demand, one: Type, zones: int, limits: Limits) -> Plan | str:
    """The smallest fleet of this type in so many zones, or why there is none."""
    if demand.networks > one.machine.max_nics:
        return f"{one.name} takes {one.machine.max_nics} NICs, {demand.networks} are needed"
    stream = min(limits.number("flow", "gbps"), one.gbps * limits.number("flow", "reached"))
    if demand.per_stream > stream:
        return f"one stream gets {stream:.1f} Gbit/s of {one.name}, whatever the number of routers"
    limited = bounds(one, demand, limits)
    router = limited[0].allows
    router_packets = router * _packets(demand) / demand.gbps
    most = int(limits.number("fleet", "most")) // zones
    zone, vm = limits.number("availability", "zone"), limits.number("availability", "vm")
    needed = math.ceil(demand.gbps / router - 1e-9)

    def there(count: int) -> int:
        return sure(zones, count, demand.availability, zone=zone, vm=vm)

    least = _smallest(lambda count: there(count) >= needed, most)
    if least is None:
        if there(most) == 0:
            return f"{zones} zone{'s' if zones > 1 else ''} of {zone:g} cannot give {demand.availability:g}"
        return f"more than {most * zones} routers of {one.name} would be needed in {zones} zones"
    peak = max(math.ceil((demand.peak or 2 * demand.gbps) / router / zones - 1e-9), least)
    if peak > most:
        return f"the peak needs more than {most * zones} routers of {one.name} in {zones} zones"
    detect = demand.interval * demand.unhealthy + demand.timeout
    cpu = router_packets * VCPUS_PER_PACKET / one.vcpus
    return Plan(
        demand=demand,
        type=one,
        zones=zones,
        least=least,
        most=peak,
        router=router,
        router_packets=router_packets,
        stream=min(stream, router),
        sure=there(least),
        bounds=tuple(limited),
        cpu=cpu,
        target=cpu_target(cpu),
        detect=detect,
        pause=next((step for step in LADDER_SECONDS if step >= detect), LADDER_SECONDS[-1]),
        monthly=_monthly(one, zones * least, demand.networks, limits),
        monthly_most=_monthly(one, zones * peak, demand.networks, limits),
    )


def _smallest(fits: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 on that fits; more always fits where fewer do."""
    if most < 1 or not fits(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _monthly(one: Type, routers: int, networks: int, limits: Limits) -> float:
    hours = limits.number("prices", "hours")
    rules = limits.number("prices", "rules_hour") + max(0, networks - 5) * limits.number("prices", "further_rule_hour")
    return routers * (one.hourly * hours + limits.number("prices", "disk_month")) + rules * hours


def crossing(found: Plan, limits: Limits) -> float:
    """US dollars for each TB of payload that the routers carry: each hop crosses a zone as often as chance has it."""
    share = 1 - 1 / found.zones
    return 2 * share * 1e12 / GIB * limits.number("prices", "zone_crossing_gib")
