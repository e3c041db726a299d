"""Others' rules that come before ours: which of them take packets that are ours to route.

`ip rule add` without a priority puts a rule before the first one, so before all of ours, whoever calls it. Most are
harmless and stay. Each is tried on packets that it fits, in a small model of how the kernel looks a route up.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Iterator, Mapping, NamedTuple

from model import SPECIAL, Router
from wanted import (
    ELSEWHERE,
    LOCAL,
    MAX_TRIED,
    METADATA_SERVER,
    OUTSIDE,
    PROTOCOL,
    Lookup,
    Route,
    reachable,
    way_out,
)

ALL = IPv4Network("0.0.0.0/0")
DELIVERIES = ("local", "broadcast", "multicast", "anycast")
"""Kinds of routes that the table `local` is for."""

KERNEL, AGENT = 2, 66
"""Origin marks of routes: the kernel's own, and the guest agent's."""

MAX_SAMPLES = 64
"""Destinations that are tried for one rule at most: a table may hold thousands of routes."""


class ForeignRule(NamedTuple):
    """A rule that is not ours.

    Attributes:
        priority: Its place.
        protocol: Origin mark.
        source: Senders that it fits.
        destination: Destinations that it fits.
        iif: Incoming NIC; empty for any, ``lo`` for what the VM sends.
        inverted: It fits all that its selectors do not.
        table: Where it looks the route up; 0 when it does something else.
        ends: Without a table: empty if it drops, ``over`` if it jumps over ours.
        suppress: Routes with a prefix no longer than this do not count; -1 when all do.
        selector: As `ip` takes it, to delete this rule and no other.
    """

    priority: int
    protocol: int
    source: IPv4Network = ALL
    destination: IPv4Network = ALL
    iif: str = ""
    inverted: bool = False
    table: int = 0
    ends: str | None = None
    suppress: int = -1
    selector: str = ""

    def fits(self, packet: Lookup) -> bool:
        """Whether the kernel asks this rule about a packet. What it asks beside addresses and NIC is taken to be so."""
        plain = (
            IPv4Address(packet.source) in self.source
            and IPv4Address(packet.destination) in self.destination
            and self.iif in ("", packet.iif or "lo")
        )
        return plain or self.inverted


def takeovers(
    rules: tuple[ForeignRule, ...], routes: tuple[Route, ...], router: Router, devices: Mapping[int, str]
) -> list[tuple[ForeignRule, Lookup]]:
    """The rules that lead our packets elsewhere, each with one such packet.

    Args:
        rules: Others' rules before ours.
        routes: All routes.
        router: From the metadata.
        devices: NIC number → present interface name.
    """
    found = []
    for rule in rules:
        table = [(_network(route), route) for route in routes if route.table == rule.table]
        leads: dict[str, str | None] = {}
        for packet in _packets(rule, [network for network, _ in table], router, devices):
            if packet.destination not in leads:
                leads[packet.destination] = _leads(rule, table, IPv4Address(packet.destination))
            if rule.fits(packet) and leads[packet.destination] not in (None, packet.device):
                found.append((rule, packet))
                break
    return found


def swallowing(routes: tuple[tuple[Route, int], ...], router: Router) -> list[tuple[Route, int]]:
    """Local routes, with their origin marks, by which this VM takes for its own what is known to be behind a NIC.

    Those of addresses that a link has are the kernel's, and those of forwarding rules and alias ranges are ours or the
    guest agent's, which may know of them before us.
    """
    known = {network for nic in router.nics for network in reachable(nic)}
    own = {net for nic in router.nics for net in (IPv4Network(nic.address), *nic.forwarded, *nic.aliases)}
    found = []
    for route, protocol in routes:
        if route.table != LOCAL or route.kind not in DELIVERIES or protocol in (KERNEL, AGENT, PROTOCOL):
            continue
        network = _network(route)
        if any(map(network.overlaps, known)) and not any(map(network.subnet_of, own)):
            found.append((route, protocol))
    return found


def _leads(rule: ForeignRule, table: list[tuple[IPv4Network, Route]], destination: IPv4Address) -> str | None:
    """Where a rule leads: an interface, ``local``, empty if it drops, None for nowhere, that is to the next rule."""
    if rule.ends is not None:
        return rule.ends
    fits = [
        (network.prefixlen, -route.metric, route)
        for network, route in table
        if destination in network and network.prefixlen > rule.suppress
    ]
    if not fits:
        return None
    route = max(fits, key=lambda fit: fit[:2])[2]
    return {"unicast": route.device, "local": "local", "throw": None}.get(route.kind, "")


def _packets(
    rule: ForeignRule, table: list[IPv4Network], router: Router, devices: Mapping[int, str]
) -> Iterator[Lookup]:
    """Packets that are ours to route, chosen so that some fit the rule; `device` is where they must leave."""
    # Nor is anything sent on to a gateway itself.
    own = {
        address.network_address
        for nic in router.nics
        for address in (IPv4Network(nic.address), IPv4Network(nic.gateway), *nic.forwarded, *nic.aliases)
    }
    wider = {network for nic in router.nics for network in reachable(nic)}
    networks = [rule.destination, *sorted({*table, *wider})[:MAX_SAMPLES]]
    targets = {*map(_sample, networks), IPv4Address(ELSEWHERE), IPv4Address(OUTSIDE)} - own
    senders = {_sample(rule.source), IPv4Address(OUTSIDE), *(_sample(nic.subnet) for nic in router.nics)} - own
    present = [nic for nic in router.nics if nic.number in devices]
    if 0 in devices:
        yield Lookup(METADATA_SERVER, "0.0.0.0", "", devices[0])
    for target in sorted(filter(_ordinary, targets)):
        for nic in present:
            for address in (IPv4Network(nic.address), *nic.forwarded[:MAX_TRIED]):
                yield Lookup(str(target), str(address.network_address), "", devices[nic.number])
            out = way_out(router, nic.number, IPv4Network(target))
            if out is not None and out not in devices:
                continue
            for sender in sorted(filter(_ordinary, senders)):
                yield Lookup(str(target), str(sender), devices[nic.number], "" if out is None else devices[out])


def _sample(network: IPv4Network) -> IPv4Address:
    """One address of it, which is hardly the gateway's."""
    return network.network_address if network.prefixlen > 30 else network.broadcast_address - 1


def _ordinary(address: IPv4Address) -> bool:
    return not any(address in special for special in SPECIAL)


def _network(route: Route) -> IPv4Network:
    return ALL if route.destination in ("default", "") else IPv4Network(route.destination)
