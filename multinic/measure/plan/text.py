"""Plans in words and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from multinic.measure.plan.limits import Limits
from multinic.measure.plan.planner import FEWEST_STREAMS_PER_ROUTER, Plan, crossing


def rows(plan: Plan) -> list[tuple[str, str]]:
    """What to declare and what to expect."""
    demand = plan.demand
    binding = plan.bounds[0]
    found = [
        ("for", f"{demand.gbps:g} Gbit/s of TCP payload, {demand.availability:.4%} of the time, MTU {demand.mtu}"),
        ("machine type", plan.type.name),
        ("routers", f"{plan.least} in each of {plan.zones} zone{'s' if plan.zones > 1 else ''} ({plan.routers})"),
        ("replicas", f"min {plan.least}, max {plan.most} a zone"),
        ("autoscaler's CPU target", f"{plan.target:g}"),
        ("one router", f"{plan.router:.1f} Gbit/s, {plan.router_packets:,.0f} packets/s; {binding.name} bind"),
        ("sure to be there", f"{plan.sure} routers: {plan.capacity:.1f} Gbit/s, {plan.packets:,.0f} packets/s"),
        ("one stream", f"up to {plan.stream:.1f} Gbit/s"),
        ("all routers", f"{plan.routers * plan.router:.1f} Gbit/s"),
        (
            "pause when a router is lost",
            f"{plan.pause:g} s at most: noticed in {plan.detect:g} s, then TCP's next step",
        ),
        ("pause for what is planned", "none (at most 0.2 s)"),
        ("cost a month", f"{_cost(plan)}, up to ${plan.monthly_most:,.0f} at the peak"),
    ]
    if demand.streams:
        found.insert(9, (f"{demand.streams} streams together", f"{plan.expected:.1f} Gbit/s expected"))
    return [("", "plan"), *found]


def notes(plan: Plan, limits: Limits) -> list[str]:
    """What a reader must know."""
    lines = [
        f"Cost: machines, disks and forwarding rules ({limits.source('prices')}). Each TB that crosses zones by chance "
        f"adds ${crossing(plan, limits):.2f}; whether next-hop traffic counts as load balancing data is not known.",
        "Packet and flow limits are careful defaults, not documented ones: `--explain` says which. Measure them.",
    ]
    if plan.type.tier_1:
        lines.append(
            "Tier_1 networking has a charge of its own, by machine type, which is not in the cost: "
            "https://cloud.google.com/vpc/network-pricing. Plans without it may be cheaper in truth."
        )
    if plan.target > plan.cpu:
        lines.append(
            f"A full router uses {plan.cpu:.1%} of its CPU, which no CPU target notices: let `autoscaler.metrics` "
            "follow the bytes that VMs send, or take a machine type with fewer vCPUs."
        )
    if plan.zones == 1:
        lines.append("One zone: when it fails, nothing is left. Ask for more availability to get more zones.")
    if 0 < plan.demand.streams < plan.routers * FEWEST_STREAMS_PER_ROUTER:
        lines.append(
            f"{plan.demand.streams} streams over {plan.routers} routers: the hash will leave some idle; each stream "
            "stays on one router."
        )
    return lines


def _cost(plan: Plan) -> str:
    return f"${plan.monthly:,.0f}" + (" and Tier_1's charge" if plan.type.tier_1 else "")


def explanation(plan: Plan) -> list[str]:
    """Every limit of one router, with its source."""
    lines = []
    for number, one in enumerate(plan.bounds):
        binds = "binds" if number == 0 else "does not bind"
        lines += [f"{one.name}: {one.allows:.1f} Gbit/s, {binds}", f"  {one.text}", f"  source: {one.source}"]
    return lines


def others(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    """What else fits, cheapest first."""
    header = ("machine type", "zones", "routers a zone", "sure Gbit/s", "binds", "cost a month")
    return [
        header,
        *(
            (
                one.type.name,
                str(one.zones),
                f"{one.least} to {one.most}",
                f"{one.capacity:.1f}",
                one.bounds[0].name,
                _cost(one),
            )
            for one in plans
        ),
    ]


def as_json(plan: Plan) -> dict[str, Any]:
    """All of it, for other programs."""
    return {
        "machine": plan.type.machine.name,
        "tier_1": plan.type.tier_1,
        "zones": plan.zones,
        "replicas": {"min": plan.least, "max": plan.most},
        "cpu_target": plan.target,
        "router_gbps": round(plan.router, 3),
        "router_packets": round(plan.router_packets),
        "stream_gbps": round(plan.stream, 3),
        "sure_gbps": round(plan.capacity, 3),
        "expected_gbps": round(plan.expected, 3),
        "detect_s": plan.detect,
        "pause_s": plan.pause,
        "monthly_usd": round(plan.monthly, 2),
        "monthly_most_usd": round(plan.monthly_most, 2),
        "not_in_the_cost": ["Tier_1"] * plan.type.tier_1,
        "bounds": [asdict(one) for one in plan.bounds],
        "demand": asdict(plan.demand),
    }
