"""Fleets of pretence, for what is planned on plain data."""

from __future__ import annotations

from dataclasses import replace

from multinic.operate.fleet import Autoscaler, Fleet, Group, Hop, Nic, Route, Router

REGION = "us-central1"
NETWORKS = ("left", "right")


def network_link(name: str) -> str:
    return f"projects/p/global/networks/{name}"


def hop(name: str, number: int, prefix: str = "router") -> Hop:
    here = f"projects/p/regions/{REGION}"
    return Hop(
        network=name,
        network_link=network_link(name),
        service=f"{here}/backendServices/{prefix}-{name}",
        rule=f"{here}/forwardingRules/{prefix}-{name}",
        address=f"10.{number}.0.9",
        check="projects/p/global/healthChecks/traffic",
        affinity="CLIENT_IP_PORT_PROTO",
    )


def group(zone: str, **more: object) -> Group:
    here = f"projects/p/zones/{zone}"
    made = Group(
        name=f"group-{zone}",
        zone=zone,
        link=f"{here}/instanceGroupManagers/group-{zone}",
        members=f"{here}/instanceGroups/group-{zone}",
        base=f"router-{zone[-1]}",
        size=1,
        template="t-1111111",
        stable=True,
        reached=True,
        actions={},
        autoscaler=Autoscaler("as", 1, 4, "ON"),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def router(zone: str, number: int, **more: object) -> Router:
    made = Router(
        name=f"router-{zone[-1]}-{number}",
        zone=zone,
        group=f"group-{zone}",
        id=f"id-{zone[-1]}-{number}",
        status="RUNNING",
        template="t-1111111",
        health=dict.fromkeys(NETWORKS, "HEALTHY"),
        nics=tuple(
            Nic(network_link(name), f"projects/p/regions/{REGION}/subnetworks/{name}", f"10.{index}.0.{10 + number}")
            for index, name in enumerate(NETWORKS)
        ),
        account="routers@p",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def route(network: str, destination: str, priority: int = 900, prefix: str = "router", **more: object) -> Route:
    made = Route(
        name=f"{prefix}-{network}",
        project="p",
        network=network,
        network_link=network_link(network),
        destination=destination,
        priority=priority,
        next_hop=f"projects/p/regions/{REGION}/forwardingRules/{prefix}-{network}",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def fleet(zones: str = "abc", prefix: str = "router", priority: int = 900) -> Fleet:
    """A VM in each zone, all healthy, a route each way."""
    names = [f"{REGION}-{letter}" for letter in zones]
    return Fleet(
        name=prefix,
        project="p",
        region=REGION,
        hops=tuple(hop(name, number, prefix) for number, name in enumerate(NETWORKS)),
        groups=tuple(group(name) for name in names),
        routers=tuple(router(name, 0) for name in names),
        routes=(
            route("left", "10.1.0.0/16", priority, prefix),
            route("right", "10.0.0.0/16", priority, prefix),
        ),
    )


def with_router(found: Fleet, name: str, **more: object) -> Fleet:
    """The fleet with one VM changed."""
    routers = [replace(one, **more) if one.name == name else one for one in found.routers]  # type: ignore[arg-type]
    return replace(found, routers=tuple(routers))


def with_group(found: Fleet, number: int, **more: object) -> Fleet:
    """The fleet with one group changed."""
    groups = list(found.groups)
    groups[number] = replace(groups[number], **more)  # type: ignore[arg-type]
    return replace(found, groups=tuple(groups))
