"""What the kernel should look like: a pure function of the router's description and of the NICs' present names.

Rules, in the order in which the kernel tries them (before all of them, at 0, the table `local` delivers what is for the
VM itself):

====== ========================================== =============================================================
900    to the metadata server, from the VM        nic0's way: no other NIC reaches it
1000+N comes in by nicN                           the other NIC's table (wire), or nicN's forwarding table
1100+N from an address of nicN, sent by the VM    nicN's table: probes are answered where they came in
1900+N comes in by nicN, and nothing above knew   dropped: never to `main`, whose default would send it back
====== ========================================== =============================================================
"""

from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses
from typing import Mapping, NamedTuple

from model import Nic, Router

PROTOCOL = 213
"""Origin mark on our routes and rules, free in iproute2's list; 66 is the guest agent's."""

MAIN, LOCAL, DEFAULT = 254, 255, 253
OUT, FORWARD = 1000, 1100
"""Numbers of the tables that lead out of nicN (OUT+N), and that choose for packets from nicN (FORWARD+N)."""

METADATA_RULE, TRANSIT_RULE, OWN_RULE, DROP_RULE = 900, 1000, 1100, 1900
METADATA_SERVER = "169.254.169.254"
MAX_TRIED = 50
"""Forwarded addresses of a NIC that lookups are tried with: all of them have their rules and routes."""

OUTSIDE, ELSEWHERE = "192.0.2.1", "198.51.100.1"
"""Addresses that no network may use (RFC 5737): they stand for a sender and a destination when lookups are tried."""


class Rule(NamedTuple):
    """One routing rule. `table` 0 drops."""

    priority: int
    source: str = "all"
    destination: str = "all"
    iif: str = ""
    table: int = 0


class Route(NamedTuple):
    """One route; `kind` is unicast, local or blackhole. Ours never have a metric, nor what comes after it.

    Attributes:
        extra: What else there is to it: an MTU, say.
        key: In `ip`'s words, what tells it from others of its destination: a type of service, say.
    """

    table: int
    destination: str
    device: str = ""
    via: str = ""
    kind: str = "unicast"
    source: str = ""
    metric: int = 0
    extra: str = ""
    key: str = ""


class Link(NamedTuple):
    """How a NIC's link should be."""

    device: str
    mac: str
    address: str
    gateway: str
    mtu: int | None


class Lookup(NamedTuple):
    """A lookup that the kernel must answer as we mean it. `device` is ``local`` for delivery to the VM."""

    destination: str
    source: str
    iif: str
    device: str


class Wanted(NamedTuple):
    """The whole wanted state, for the NICs that are there."""

    links: tuple[Link, ...]
    routes: tuple[Route, ...]
    rules: tuple[Rule, ...]
    sysctls: tuple[tuple[str, str], ...]
    nft: str
    lookups: tuple[Lookup, ...]


BASE_RULES = (Rule(0, table=LOCAL), Rule(32766, table=MAIN), Rule(32767, table=DEFAULT))
"""The kernel's own rules. Others delete them too."""


def text(network: IPv4Network) -> str:
    """As iproute2 prints it."""
    if network.prefixlen == 0:
        return "default"
    return str(network.network_address) if network.prefixlen == 32 else str(network)


def wanted(router: Router, devices: Mapping[int, str]) -> Wanted:
    """Computes the wanted state.

    Args:
        router: From the metadata.
        devices: NIC number → present interface name. A NIC that is missing has no entry; the others are set up so
            that nothing for it leaves by a wrong NIC.
    """
    nics = [nic for nic in router.nics if nic.number in devices]
    return Wanted(
        links=tuple(Link(devices[nic.number], nic.mac, str(nic.address), str(nic.gateway), nic.mtu) for nic in nics),
        routes=tuple(_routes(router, nics, devices)),
        rules=tuple(_rules(router, nics, devices)),
        sysctls=tuple(_sysctls([devices[nic.number] for nic in nics])),
        nft=_nft(router, [devices[nic.number] for nic in nics]),
        lookups=tuple(_lookups(router, nics, devices)),
    )


def names(router: Router) -> dict[str, str]:
    """Files below iproute2's folder that give tables and protocol readable names."""
    tables = [f"{OUT + nic.number} nic{nic.number}\n" for nic in router.nics]
    if router.by_destination:
        tables += [f"{FORWARD + nic.number} from-nic{nic.number}\n" for nic in router.nics]
    return {"rt_tables.d/multinic.conf": "".join(tables), "rt_protos.d/multinic.conf": f"{PROTOCOL} multinic\n"}


def owned(table: int) -> bool:
    """Whether a table is ours, and everything in it."""
    return OUT <= table < OUT + 100 or FORWARD <= table < FORWARD + 100


def reachable(nic: Nic) -> set[IPv4Network]:
    """What is behind a NIC: the lists, and always its own subnet."""
    return {nic.subnet, *nic.cidrs}


def way_out(router: Router, incoming: int, destination: IPv4Network) -> int | None:
    """The NIC by which a packet for `destination` that came in by NIC `incoming` must leave; None means dropped."""
    if not router.by_destination:
        return 1 - incoming
    best, owner = -1, None
    for nic in router.nics:
        for cidr in reachable(nic):
            if destination.subnet_of(cidr) and cidr.prefixlen > best:
                best, owner = cidr.prefixlen, nic.number
    return None if owner == incoming else owner


def _routes(router: Router, nics: list[Nic], devices: Mapping[int, str]) -> list[Route]:
    found = []
    for nic in nics:
        device = devices[nic.number]
        # With a /32 address the gateway is on no subnet: the kernel takes it only if a link route is in the same table.
        found.append(Route(OUT + nic.number, str(nic.gateway), device))
        found.append(Route(OUT + nic.number, "default", device, str(nic.gateway), source=str(nic.address)))
        # The NIC's own one is the kernel's, and is put back when somebody has flushed it.
        own = (IPv4Network(nic.address), *nic.forwarded)
        found += [Route(LOCAL, text(address), device, kind="local") for address in own]
        if not router.by_destination:
            continue
        table = FORWARD + nic.number
        for other in nics:
            if other.number == nic.number:
                # Drops what would go back, also where another NIC's wider range contains it.
                found += [Route(table, text(cidr), kind="blackhole") for cidr in sorted(reachable(nic))]
                continue
            found.append(Route(table, str(other.gateway), devices[other.number]))
            found += [
                Route(table, text(cidr), devices[other.number], str(other.gateway))
                for cidr in sorted(reachable(other))
                if text(cidr) != str(other.gateway)
            ]
    return found


def _rules(router: Router, nics: list[Nic], devices: Mapping[int, str]) -> list[Rule]:
    found = [Rule(METADATA_RULE, destination=METADATA_SERVER, iif="lo", table=OUT)]
    for nic in nics:
        device = devices[nic.number]
        table = FORWARD + nic.number if router.by_destination else OUT + 1 - nic.number
        found.append(Rule(TRANSIT_RULE + nic.number, iif=device, table=table))
        sources = {IPv4Network(nic.address), nic.subnet, *nic.forwarded, *nic.aliases}
        found += [
            Rule(OWN_RULE + nic.number, source=text(source), iif="lo", table=OUT + nic.number)
            for source in sorted(sources)
        ]
        found.append(Rule(DROP_RULE + nic.number, iif=device))
    return found


def _sysctls(devices: list[str]) -> list[tuple[str, str]]:
    # ip_forward comes first: writing it makes the kernel reset others.
    found = [
        ("net/ipv4/ip_forward", "1"),
        # Errors leave with the address of the NIC that the packet came in by: the rules then send them to its sender.
        ("net/ipv4/icmp_errors_use_inbound_ifaddr", "1"),
        # The stricter of `all` and the NIC's own value is in force.
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/all/send_redirects", "0"),
        # Load balancers' set-up guides have hosts not answer for some of their addresses.
        ("net/ipv4/conf/all/arp_ignore", "0"),
        ("net/ipv4/conf/all/arp_filter", "0"),
    ]
    for device in devices:
        found += [
            (f"net/ipv4/conf/{device}/{key}", value)
            for key, value in (
                ("forwarding", "1"),
                ("rp_filter", "0"),
                ("send_redirects", "0"),
                ("accept_redirects", "0"),
                ("arp_ignore", "0"),
                ("arp_filter", "0"),
                # Where there are rules, the kernel looks up each packet's sender too, only to refuse our own
                # addresses as senders: half of all lookups, for what the network refuses already.
                ("accept_local", "1"),
            )
        ]
    return found


def _nft(router: Router, devices: list[str]) -> str:
    """The packet filter: no connection tracking, no address rewriting, a few short rules."""
    # By names, which a NIC that is plugged in anew keeps. Comparing numbers would cost a packet no less.
    forward = [f'iifname "{device}" oifname "{device}" counter name "same_nic" drop' for device in devices]
    if router.clamp_mss is not None:
        size = "tcp option maxseg size"
        forward.append(f"tcp flags & (syn | rst) == syn {size} > {router.clamp_mss} {size} set {router.clamp_mss}")
    lines = [
        "counter same_nic { }",
        "chain forward {",
        "type filter hook forward priority -5; policy accept;",
        *forward,
        "}",
    ]
    if router.by_destination and devices:
        # Routing drops what it does not know without counting it; this counts it on the way.
        known = {network for nic in router.nics for network in (*reachable(nic), *nic.forwarded, *nic.aliases)}
        many = map(IPv4Network, ("224.0.0.0/4", "255.255.255.255"))
        elements = ", ".join(map(str, collapse_addresses([*known, *many])))
        nics = ", ".join(f'"{device}"' for device in devices)
        lines += [
            "counter no_route { }",
            f"set known {{ type ipv4_addr; flags interval; elements = {{ {elements} }} }}",
            "chain prerouting {",
            "type filter hook prerouting priority -5; policy accept;",
            f'iifname {{ {nics} }} ip daddr != @known counter name "no_route" drop',
            "}",
        ]
    return "table ip multinic {\n" + "\n".join(lines) + "\n}\n"


def _lookups(router: Router, nics: list[Nic], devices: Mapping[int, str]) -> list[Lookup]:
    found = []
    for nic in nics:
        device = devices[nic.number]
        for network in (IPv4Network(nic.address), *nic.forwarded[:MAX_TRIED]):
            own = str(network.network_address)
            found.append(Lookup(own, OUTSIDE, device, "local"))
            found.append(Lookup(OUTSIDE, own, "", device))
        if not router.by_destination:
            if 1 - nic.number in devices:
                found.append(Lookup(ELSEWHERE, OUTSIDE, device, devices[1 - nic.number]))
            continue
        for other in nics:
            for cidr in sorted(reachable(other))[:2]:
                target = IPv4Network(cidr.network_address + (2 if cidr.prefixlen < 30 else 0))
                out = way_out(router, nic.number, target)
                mine = [own for held in nics for own in (IPv4Network(held.address), *held.forwarded)]
                if out in devices and not any(target.overlaps(own) for own in mine):
                    found.append(Lookup(str(target.network_address), OUTSIDE, device, devices[out or 0]))
    return found
