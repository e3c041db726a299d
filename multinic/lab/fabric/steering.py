"""From routes and load balancers to nftables: which router's NIC a packet of a VPC network goes to.

The way of a packet that a machine sent: the longest matching range decides (a load balancer's own address, then
subnetworks, then static routes by prefix and priority). A subnetwork's addresses are delivered straight. For a route
by a load balancer, the flow's connection mark says where it went before; new flows, and flows whose router no longer
keeps them, are hashed into one of 256 buckets. The mark then selects the routing table that leads to one router's
NIC.

Sources: https://docs.cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview (what a load balancer as
next hop forwards, symmetric hashing) and https://docs.cloud.google.com/load-balancing/docs/internal (session
affinity, tracking).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from multinic.lab.fabric import hashing
from multinic.lab.fabric.port import Port
from multinic.lab.substrate import Balancer, NetworkPlan, Route

SEED = 0x6D756C74
"""Seed of the hash; the same in all networks, so that both directions of a flow agree."""
SYMMETRIC = {"CLIENT_IP", "CLIENT_IP_PROTO", "CLIENT_IP_PORT_PROTO"}
"""Affinities with symmetric hashing. NONE is not among them, nor CLIENT_IP_NO_DESTINATION."""
FIVE_TUPLE = {"NONE", "CLIENT_IP_PORT_PROTO"}

Chains = dict[str, list[str]]
"""Name of a chain → its rules."""


@dataclass(frozen=True)
class Steering:
    """The part of a ruleset that steers.

    Attributes:
        chains: Chains below ``routes``, which is the first.
        maps: Declarations of named maps, whose contents outlive a new ruleset.
    """

    chains: Chains
    maps: dict[str, str]


def steering(plan: NetworkPlan, ports: Sequence[Port]) -> Steering:
    """Chains for the packets that machines send into the network."""
    chains: Chains = {"routes": []}
    maps: dict[str, str] = {}
    for balancer in plan.balancers:
        _balancer_chains(balancer, plan, ports, chains, maps)
    tagged = {machine for route in plan.routes if route.sources is not None for machine in route.sources}
    classes: dict[tuple[Route, ...], str] = {}
    vmap = []
    for port in ports:
        if port.machine in tagged:
            mine = tuple(route for route in plan.routes if route.sources is None or port.machine in route.sources)
            name = classes.setdefault(mine, f"routes_{len(classes) + 1}")
            vmap.append(f'"{port.device}" : goto {name}')
    if vmap:
        chains["routes"].append(f"iifname vmap {{ {', '.join(vmap)} }}")
    common = tuple(route for route in plan.routes if route.sources is None)
    chains["routes"] += _lookup(common, plan, ports, chains)
    for routes, name in classes.items():
        chains[name] = _lookup(routes, plan, ports, chains)
    return Steering(chains, maps)


def _lookup(routes: Iterable[Route], plan: NetworkPlan, ports: Sequence[Port], chains: Chains) -> list[str]:
    """One look-up of the destination in disjoint ranges; what is in none has no route and is dropped silently."""
    balancers = {balancer.address: balancer for balancer in plan.balancers}
    # Later entries cover earlier ones: worst route first, then the subnetworks, then the load balancers' own addresses.
    layers: list[tuple[IPv4Network, str]] = []
    for route in sorted(routes, key=lambda r: (r.destination.prefixlen, -r.priority, str(r.balancer))):
        balancer = balancers.get(route.balancer) if route.balancer is not None else None
        verdict = (
            "drop" if balancer is None else f"goto {_route_chain(route.destination, balancer, plan, ports, chains)}"
        )
        layers.append((route.destination, verdict))
    layers += [(network, "accept") for network in plan.subnetworks.values()]
    layers += [
        (
            IPv4Network(balancer.address),
            f"goto {_route_chain(IPv4Network(balancer.address), balancer, plan, ports, chains)}",
        )
        for balancer in plan.balancers
    ]
    elements = [f"{_range(first, last)} : {verdict}" for first, last, verdict in _disjoint(layers)]
    return [*([f"ip daddr vmap {{ {', '.join(elements)} }}"] if elements else []), "drop"]


def _disjoint(layers: Sequence[tuple[IPv4Network, str]]) -> list[tuple[int, int, str]]:
    """Ranges without overlap from networks of which later ones cover earlier ones; equal neighbours are joined."""
    edges = sorted({edge for network, _ in layers for edge in (int(network[0]), int(network[-1]) + 1)})
    found: list[tuple[int, int, str]] = []
    for first, after in itertools.pairwise(edges):
        verdict = next((v for n, v in reversed(layers) if int(n[0]) <= first <= int(n[-1])), None)
        if verdict is None:
            continue
        if found and found[-1][1] == first - 1 and found[-1][2] == verdict:
            found[-1] = (found[-1][0], after - 1, verdict)
        else:
            found.append((first, after - 1, verdict))
    return found


def _range(first: int, last: int) -> str:
    return str(IPv4Address(first)) if first == last else f"{IPv4Address(first)}-{IPv4Address(last)}"


def _route_chain(
    destination: IPv4Network, balancer: Balancer, plan: NetworkPlan, ports: Sequence[Port], chains: Chains
) -> str:
    """The chain that says in which order a flow's two addresses are hashed, so that both directions agree.

    The order is that of the addresses themselves, lower one first. nftables cannot compare two fields of a packet; but
    a route's destination or the sender's subnetwork tells, as no route leads into the sender's own subnetwork.
    """
    name = f"to_{_identifier(destination)}_{_identifier(balancer.address)}"
    if name in chains:
        return name
    normal = f"goto {_balancer_chain(balancer)}_n"
    swapped = f"goto {_balancer_chain(balancer)}_s"
    rules = [normal]
    if balancer.affinity in SYMMETRIC and balancer.backends:
        first, last = destination[0], destination[-1]
        rules = [f"ip saddr < {first} {normal}"] if int(first) > 0 else []
        if int(last) < 2**32 - 1:
            rules.append(f"ip saddr > {last} {swapped}")
        for network in plan.subnetworks.values():
            if network.subnet_of(destination) and int(network[0]) > 0:
                rules.append(f"ip saddr {network} ip daddr < {network[0]} {swapped}")
        rules.append(normal)
    clients = balancer.clients
    strangers = [] if clients is None else [f'"{port.device}"' for port in ports if port.machine not in clients]
    # Without global access a route that leads there drops what comes from another region.
    chains[name] = [*([f"iifname {{ {', '.join(strangers)} }} drop"] if strangers else []), *rules]
    return name


def _balancer_chains(
    balancer: Balancer, plan: NetworkPlan, ports: Sequence[Port], chains: Chains, maps: dict[str, str]
) -> None:
    name = _balancer_chain(balancer)
    mark_of = {port.machine: port.index for port in ports}
    new = [b.machine for b in balancer.backends if b.takes_new and b.machine in mark_of]
    there = [b for b in balancer.backends if b.machine in mark_of]
    kept = sorted(mark_of[b.machine] for b in there if b.keeps_connectionless)
    streams = sorted(mark_of[b.machine] for b in there if b.keeps_existing and not b.keeps_connectionless)
    sessions = _sessions(balancer, name)
    if sessions:
        maps[f"{name}_sessions"] = sessions[0]
    for suffix in ("n", "s"):
        chains[f"{name}_{suffix}"] = [
            *_known(name, suffix, kept, streams, sessions[1] if sessions else None),
            f"goto {name}_{suffix}_new",
        ]
        # Without symmetric hashing each network has a hash of its own, as nothing promises more.
        seed = SEED if balancer.affinity in SYMMETRIC else SEED ^ (hash_of(plan.key) | 1)
        chains[f"{name}_{suffix}_new"] = [*_hash(balancer.affinity, seed, suffix == "s"), f"goto {name}_pick"]
    remember = (
        [f"update @{name}_sessions {{ {sessions[1]} timeout {balancer.idle_timeout}s : meta mark }}"]
        if sessions
        else []
    )
    chains[f"{name}_keep"] = ["meta mark set ct mark", *remember, "accept"]
    if not new:
        chains[f"{name}_pick"] = ["drop"]
        return
    elements = ", ".join(f"{bucket} : {mark_of[machine]}" for bucket, machine in enumerate(hashing.owners(new)))
    chains[f"{name}_pick"] = [
        f"meta mark set meta mark map {{ {elements} }}",
        "ct mark set meta mark",
        *remember,
        "accept",
    ]


def _known(name: str, suffix: str, kept: list[int], streams: list[int], session: str | None) -> list[str]:
    """Rules for flows that have a router already.

    Args:
        name: The load balancer's.
        suffix: Which way round addresses are hashed.
        kept: Marks of the routers that keep all of their flows.
        streams: Marks of those that keep flows of protocols with connections only.
        session: Fields of a packet that make its session, where those are tracked.
    """
    rules = []
    # A SYN is a new connection always, except where a session that is coarser than a connection is tracked.
    if session is None:
        rules.append(f"tcp flags & (syn | ack) == syn goto {name}_{suffix}_new")
    if session is not None and (kept or streams):
        rules.append(f"ct mark set {session} map @{name}_sessions")
    for marks, match in ((kept, ""), (streams, "meta l4proto { tcp, sctp } ")):
        if marks:
            rules.append(f"{match}ct mark {{ {', '.join(map(str, marks))} }} goto {name}_keep")
    return rules


def _sessions(balancer: Balancer, name: str) -> tuple[str, str] | None:
    """Declaration and key of the map of sessions; None where tracking is by connection, or as fine as that."""
    if not balancer.per_session or balancer.affinity in FIVE_TUPLE:
        return None
    kinds, key = {
        "CLIENT_IP": ("ipv4_addr . ipv4_addr", "ip saddr . ip daddr"),
        "CLIENT_IP_PROTO": ("ipv4_addr . ipv4_addr . inet_proto", "ip saddr . ip daddr . ip protocol"),
    }.get(balancer.affinity, ("ipv4_addr", "ip saddr"))
    return f"type {kinds} : mark; size 65535; flags dynamic,timeout; timeout {balancer.idle_timeout}s;", key


def _hash(affinity: str, seed: int, swapped: bool) -> list[str]:
    """Rules that put a bucket's number into the packet's mark."""
    one, two = ("daddr", "saddr") if swapped else ("saddr", "daddr")
    one_port, two_port = ("dport", "sport") if swapped else ("sport", "dport")
    tail = f"mod {hashing.BUCKETS} seed {seed:#x}"
    addresses = f"ip {one} . ip {two}"
    match affinity:
        case "CLIENT_IP_NO_DESTINATION":
            return [f"meta mark set jhash ip saddr {tail}"]
        case "CLIENT_IP":
            return [f"meta mark set jhash {addresses} {tail}"]
        case "CLIENT_IP_PROTO":
            return [f"meta mark set jhash {addresses} . ip protocol {tail}"]
    ports = f"th {one_port} . th {two_port}"
    return [
        # Other protocols have no ports: three fields are all that there are.
        f"meta mark set jhash {addresses} . ip protocol {tail}",
        f"meta l4proto {{ tcp, udp, sctp }} meta mark set jhash {addresses} . ip protocol . {ports} {tail}",
    ]


def hash_of(text: str) -> int:
    """A number of 32 bits that stays the same from run to run."""
    total = 2166136261
    for byte in text.encode():
        total = (total ^ byte) * 16777619 % 2**32
    return total


def _balancer_chain(balancer: Balancer) -> str:
    return f"lb_{_identifier(balancer.address)}"


def _identifier(what: IPv4Address | IPv4Network) -> str:
    return str(what).replace(".", "_").replace("/", "_")
