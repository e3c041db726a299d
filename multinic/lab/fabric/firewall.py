"""VPC firewall rules as nftables chains.

Rules are tried by priority, deny before allow among equals; the implied ones come last: egress is allowed, ingress
denied. Rules are stateful, and each NIC has a state of its own: what belongs to a connection that was allowed there,
either way, passes without a rule. So a reply that comes back by another router than it went needs a rule there, as on
Google Cloud. ICMP errors that belong to a connection of the network pass.

Source: https://docs.cloud.google.com/firewall/docs/firewalls
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, collapse_addresses

from multinic.lab.fabric.port import Port
from multinic.lab.substrate import FirewallRule

NUMBERS = {"icmp": 1, "ipip": 4, "tcp": 6, "udp": 17, "esp": 50, "ah": 51, "sctp": 132}
"""Protocol names that Google's API takes, and their numbers."""
WITH_PORTS = {6, 17, 132}
IDLE_SECONDS = 600
"""Idle connections are forgotten after 10 minutes. https://cloud.google.com/firewall/docs/firewalls#specifications"""
SETS = {"flows": f"typeof iifname . ct id; size 262144; flags dynamic,timeout; timeout {IDLE_SECONDS}s;"}
"""Which connections were allowed at which router's NIC, in either direction."""


def firewall(rules: Iterable[FirewallRule], ports: Sequence[Port]) -> dict[str, list[str]]:
    """The chains of a network's firewall.

    ``leave`` returns to its caller for what may leave its VM and drops the rest, ``arrive`` decides about what comes to
    a VM; ``egress`` and ``ingress``, which they ask about what they do not know, have the rules.
    """
    ordered = sorted(rules, key=lambda rule: (rule.priority, rule.allow, rule.name))
    ingress = [line for rule in ordered if rule.ingress for line in _lines(rule, ports)]
    egress = [line for rule in ordered if not rule.ingress for line in _lines(rule, ports)]
    return {
        "leave": [*_known("iifname", ports, "return"), "jump egress", *_remember("iifname", ports)],
        "arrive": [*_known("oifname", ports, "accept"), "jump ingress", *_remember("oifname", ports), "accept"],
        "egress": egress,
        "ingress": [*ingress, 'counter drop comment "implied deny ingress"'],
    }


def _forwarders(ports: Sequence[Port]) -> str:
    """The NICs that connections may pass in one direction only, as a set; empty without one."""
    devices = [f'"{port.device}"' for port in ports if port.can_ip_forward]
    return f"{{ {', '.join(devices)} }}" if devices else ""


def _known(device: str, ports: Sequence[Port], verdict: str) -> list[str]:
    """Lets pass what belongs to a connection that this NIC knows.

    All of a connection passes the NICs at its ends, so that these know what the network's connection table knows; a
    router's NIC is looked up, which counts as use of the connection.
    """
    forwarders = _forwarders(ports)
    if not forwarders:
        return [f"ct state established {verdict}"]
    return [
        f"{device} != {forwarders} ct state established {verdict}",
        f"{device} . ct id @flows update @flows {{ {device} . ct id }} {verdict}",
    ]


def _remember(device: str, ports: Sequence[Port]) -> list[str]:
    forwarders = _forwarders(ports)
    return [f"{device} {forwarders} update @flows {{ {device} . ct id }}"] if forwarders else []


def _lines(rule: FirewallRule, ports: Sequence[Port]) -> list[str]:
    near = _targets(rule, ports)
    far = _ranges(rule, ports)
    if near is None or far is None:
        return []
    verdict = "return" if rule.allow else "drop"
    return [
        " ".join(filter(None, (near, far, protocol, "counter", verdict, f'comment "{rule.name}"')))
        for protocol in map(_protocol, rule.protocols)
    ]


def _targets(rule: FirewallRule, ports: Sequence[Port]) -> str | None:
    """Match of the machine that the rule protects; empty for all, None for none."""
    if rule.targets is None:
        return ""
    devices = [f'"{port.device}"' for port in ports if port.machine in rule.targets]
    if not devices:
        return None
    return f"{'oifname' if rule.ingress else 'iifname'} {{ {', '.join(devices)} }}"


def _ranges(rule: FirewallRule, ports: Sequence[Port]) -> str | None:
    """Match of the other side's address; empty for all, None for none."""
    sources = [IPv4Network(port.address) for port in ports if port.machine in rule.sources]
    networks = list(collapse_addresses([*rule.ranges, *sources]))
    if not networks:
        return None
    if networks == [IPv4Network("0.0.0.0/0")]:
        return ""
    return f"ip {'saddr' if rule.ingress else 'daddr'} {{ {', '.join(map(str, networks))} }}"


def _protocol(protocol: tuple[str, tuple[str, ...]]) -> str:
    name, wanted = protocol
    if name.lower() == "all":
        return ""
    number = NUMBERS.get(name.lower()) or int(name)
    if wanted and number in WITH_PORTS:
        return f"meta l4proto {number} th dport {{ {', '.join(_merged(wanted))} }}"
    return f"meta l4proto {number}"


def _merged(ports: Iterable[str]) -> list[str]:
    """Port ranges without overlap, which nftables' sets refuse."""
    pairs = sorted((int(p.partition("-")[0]), int(p.partition("-")[2] or p.partition("-")[0])) for p in ports)
    merged: list[tuple[int, int]] = []
    for first, last in pairs:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return [str(first) if first == last else f"{first}-{last}" for first, last in merged]
