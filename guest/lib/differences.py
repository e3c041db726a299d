"""Wanted against observed: a pure comparison, whose result says what `ip` must do about it."""

from __future__ import annotations

from typing import Iterable, NamedTuple

import packet_filter
from foreign import DELIVERIES
from kernel import Observed
from links import LinkState
from wanted import BASE_RULES, LOCAL, METADATA_RULE, PROTOCOL, Link, Route, Rule, Wanted, owned


class Difference(NamedTuple):
    """One thing that is not as wanted.

    Attributes:
        reason: Stable name, for programs.
        detail: For people.
        commands: What `ip` must do about it; empty where something else must be done, or nothing can.
        sysctl: The value to write, with its path.
    """

    reason: str
    detail: str
    commands: tuple[str, ...] = ()
    sysctl: tuple[str, str] | None = None


def differences(target: Wanted, observed: Observed, taken: Iterable[Difference] = ()) -> list[Difference]:
    """Compares, in the order in which things must be changed.

    Args:
        target: What should be.
        observed: What is.
        taken: What of others leads our packets elsewhere.
    """
    found: list[Difference] = []
    for link in target.links:
        found += _link(link, observed.links[link.device])
        if (link.device, link.gateway) in observed.neighbours:
            detail = f"{link.gateway} on {link.device} is an entry that the network cannot correct"
            found.append(Difference("neighbour-fixed", detail, (f"neigh del {link.gateway} dev {link.device}",)))
    found += [
        Difference("sysctl-wrong", f"{path}={observed.sysctls.get(path)}, not {value}", sysctl=(path, value))
        for path, value in target.sysctls
        if observed.sysctls.get(path) != value
    ]
    found += _routes(target, observed)
    found += _rules(target, observed)
    if observed.filter is not None and not packet_filter.is_loaded(target.nft, observed.filter):
        found.append(Difference("filter-missing", "table ip multinic is not the one that was loaded"))
    found += taken
    # Lookups prove little while something is known to be missing.
    return found or _lookups(target, observed)


def _link(link: Link, state: LinkState) -> list[Difference]:
    name = link.device
    found = []
    if state.macs and state.macs[0] != link.mac:
        # Found by its permanent one. The network takes no packet from another.
        set_mac = f"link set dev {name} address {link.mac}"
        found.append(Difference("mac-wrong", f"{name}: {state.macs[0]}, not {link.mac}", (set_mac,)))
    if link.mtu is not None and state.mtu != link.mtu:
        set_mtu = f"link set dev {name} mtu {link.mtu}"
        found.append(Difference("mtu-wrong", f"{name}: {state.mtu}, not {link.mtu}", (set_mtu,)))
    if state.master:
        free = f"link set dev {name} nomaster"
        found.append(Difference("link-enslaved", f"{name} is a port of {state.master}", (free,)))
    if not state.arp:
        found.append(
            Difference("arp-off", f"{name} asks nobody for its gateway's MAC", (f"link set dev {name} arp on",))
        )
    if not state.up:
        found.append(Difference("link-down", f"{name} is down", (f"link set dev {name} up",)))
    elif not state.carrier:
        found.append(Difference("link-down", f"{name} has no carrier"))
    if link.address not in state.addresses:
        add = f"addr add {link.address}/32 dev {name}"
        found.append(Difference("address-missing", f"{link.address} on {name}", (add,)))
    return found


def _routes(target: Wanted, observed: Observed) -> list[Difference]:
    present = {route for route, _ in observed.routes}
    local = {
        route.destination
        for route, protocol in observed.routes
        if route.table == LOCAL and route.kind == "local" and (protocol != PROTOCOL or route in target.routes)
    }
    # An address that is still to be added brings its own.
    local |= {link.address for link in target.links if link.address not in observed.links[link.device].addresses}
    found = [
        Difference(
            "local-route-missing" if route.kind == "local" else "route-missing",
            describe(route),
            (f"route replace {describe(route)}",),
        )
        for route in target.routes
        # Whoever made the local route of an address (the guest agent does, too), packets for it are delivered.
        if route not in present and not (route.kind == "local" and route.destination in local)
    ]
    # `replace` puts a missing one of ours in the place of what has its destination.
    replaced = {(route.table, route.destination) for route in target.routes if route not in present}
    for route, protocol in observed.routes:
        # The table `local` comes before all rules: whatever is not a delivery there takes packets from them.
        lost = route.table == LOCAL and (protocol == PROTOCOL or route.kind not in DELIVERIES)
        if not (lost or owned(route.table)) or route in target.routes:
            continue
        plain = route.metric == 0 and not route.key.startswith("tos") and (route.table, route.destination) in replaced
        commands = () if plain else (f"route del {identify(route, protocol)}",)
        found.append(Difference("route-unwanted", describe(route, protocol), commands))
    return found


def _rules(target: Wanted, observed: Observed) -> list[Difference]:
    present = [rule for rule, _ in observed.rules]
    found = [
        Difference("rule-missing", describe(rule), (f"rule add {describe(rule)}",))
        for rule in target.rules
        if rule not in present
    ]
    for base in BASE_RULES:
        # Some network plugins move the rule for `local`; anywhere before ours it does its work.
        at = range(METADATA_RULE) if base.table == LOCAL else (base.priority,)
        if not any(rule._replace(priority=base.priority) == base and rule.priority in at for rule in present):
            add = f"rule add pref {base.priority} from all lookup {base.table}"
            found.append(Difference("base-rule-missing", add, (add,)))
    seen = set()
    for rule, protocol in observed.rules:
        if protocol == PROTOCOL and (rule not in target.rules or rule in seen):
            found.append(Difference("rule-unwanted", describe(rule), (f"rule del {describe(rule)}",)))
        seen.add(rule)
    return found


def _lookups(target: Wanted, observed: Observed) -> list[Difference]:
    found = []
    for lookup in target.lookups:
        answer = observed.lookups.get((lookup.destination, lookup.source, lookup.iif), "nothing")
        if answer != lookup.device:
            way = f"{lookup.source} → {lookup.destination}" + (f" in by {lookup.iif}" if lookup.iif else "")
            found.append(Difference("lookup-wrong", f"{way}: {answer}, not {lookup.device}"))
    return found


def describe(item: Route | Rule, protocol: int = PROTOCOL) -> str:
    """As an `ip` command would have it."""
    if isinstance(item, Rule):
        words = [f"pref {item.priority} from {item.source}"]
        if item.destination != "all":
            words.append(f"to {item.destination}")
        if item.iif:
            words.append(f"iif {item.iif.split()[0]}")
        words.append(f"lookup {item.table}" if item.table else "blackhole")
        return " ".join([*words, f"protocol {protocol}"])
    words = [item.destination] if item.kind == "unicast" else [item.kind, item.destination]
    if item.via:
        words.append(f"via {item.via}")
    if item.device:
        words.append(f"dev {item.device}")
    words.append(f"table {item.table} proto {protocol}")
    if item.kind == "local":
        words.append("scope host")
    elif item.kind == "unicast" and not item.via:
        words.append("scope link")
    if item.source:
        words.append(f"src {item.source}")
    if item.metric:
        words.append(f"metric {item.metric}")
    return " ".join(words)


def identify(route: Route, protocol: int) -> str:
    """A route that is there, as `ip route del` needs it to find this one and no other."""
    words = [route.destination] if route.kind == "unicast" else [route.kind, route.destination]
    if route.key:
        words.append(route.key)
    # A next hop that is an object of its own is named by its number only.
    if route.via and "nhid" not in route.key:
        words.append(f"via {route.via}")
    if route.device and "nhid" not in route.key:
        words.append(f"dev {route.device}")
    words.append(f"table {route.table} proto {protocol}")
    if route.metric:
        words.append(f"metric {route.metric}")
    return " ".join(words)
