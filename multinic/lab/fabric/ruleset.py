"""The whole nftables ruleset of a VPC network's namespace, loaded in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from multinic.lab.fabric.firewall import SETS, firewall
from multinic.lab.fabric.port import Port
from multinic.lab.fabric.steering import steering
from multinic.lab.substrate import NetworkPlan

METADATA = IPv4Address("169.254.169.254")
"""Metadata server and name server of every VM. https://docs.cloud.google.com/compute/docs/metadata/overview"""
APIS = IPv4Address("199.36.153.8")
"""``private.googleapis.com``: Google's APIs for VMs without an external address. Static routes do not apply to it here.
https://docs.cloud.google.com/vpc/docs/configure-private-google-access"""
PROBES = IPv4Network("35.191.0.0/16")
"""Where health checks come from. https://docs.cloud.google.com/load-balancing/docs/health-check-concepts"""
PROBER = IPv4Address("35.191.0.10")

TABLE = "fabric"


@dataclass(frozen=True)
class Ruleset:
    """A ruleset, and what it is made of.

    Attributes:
        chains: Name → lines.
        maps: Name → declaration; their contents survive while the declaration is the same.
    """

    chains: dict[str, list[str]]
    maps: dict[str, str]

    def text(self, before: Ruleset | None) -> str:
        """Input for `nft -f` that puts this in the place of `before`."""
        lines = [f"add table ip {TABLE}"]
        if before is None:
            lines += [f"delete table ip {TABLE}"]
        else:
            lines += [f"flush table ip {TABLE}"]
            lines += [f"delete chain ip {TABLE} {name}" for name in before.chains if name not in self.chains]
            lines += [
                f"delete map ip {TABLE} {name}" for name, kind in before.maps.items() if self.maps.get(name) != kind
            ]
        lines.append(f"table ip {TABLE} {{")
        lines += [f"  map {name} {{ {kind} }}" for name, kind in self.maps.items()]
        lines += [f"  set {name} {{ {kind} }}" for name, kind in SETS.items()]
        for name, rules in self.chains.items():
            lines += [f"  chain {name} {{", *(f"    {rule}" for rule in rules), "  }"]
        lines.append("}")
        return "\n".join(lines) + "\n"


def ruleset(plan: NetworkPlan, ports: Sequence[Port]) -> Ruleset:
    """The rules for `plan` with `ports` plugged in."""
    steered = steering(plan, ports)
    chains = {
        "prerouting": [
            "type filter hook prerouting priority mangle; policy accept;",
            f"ip daddr {{ {METADATA}, {APIS} }} accept",
            *_own_addresses(plan, ports, "iifname", "saddr"),
            # Answers to probes.
            f"ip daddr {PROBES} accept",
            'iifname "v*" goto routes',
        ],
        "forward": [
            "type filter hook forward priority filter; policy drop;",
            *_own_addresses(plan, ports, "oifname", "daddr"),
            "ct state related accept",
            "jump leave",
            "goto arrive",
        ],
        "input": [
            "type filter hook input priority filter; policy drop;",
            'iifname "lo" accept',
            "ct state established,related accept",
            f"ip daddr {METADATA} tcp dport 80 accept",
            f"ip daddr {METADATA} udp dport 53 accept",
            f"ip daddr {APIS} tcp dport 443 accept",
        ],
        "output": [
            "type filter hook output priority filter; policy accept;",
            "ct state established,related accept",
            # The firewall applies to probes too.
            f'ip saddr {PROBES} oifname "v*" jump ingress',
        ],
        **steered.chains,
        **firewall(plan.firewall, ports),
    }
    return Ruleset(chains, steered.maps)


def hop_rules() -> str:
    """Rules that hide the fabric's hop: a VPC network is one hop to the packets in it.

    Forwarding takes one from the TTL, so one is added before. nftables does not calculate; a chain for each value is
    what it has.
    """
    chains = [f"  chain t{ttl} {{ ip ttl set {ttl + 1}; }}" for ttl in range(1, 255)]
    verdicts = ", ".join(f"{ttl} : goto t{ttl}" for ttl in range(1, 255))
    return "\n".join(
        [
            "table ip hop {",
            *chains,
            "  chain prerouting {",
            "    type filter hook prerouting priority raw;",
            f'    iifname "v*" ip ttl vmap {{ {verdicts} }}',
            "  }",
            "}",
            "",
        ]
    )


def _own_addresses(plan: NetworkPlan, ports: Iterable[Port], device: str, field: str) -> list[str]:
    """Drops foreign addresses at machines that may not forward."""
    restricted = [port for port in ports if not port.can_ip_forward]
    if not restricted:
        return []
    pairs = []
    for port in restricted:
        own = {port.address}
        own |= {
            balancer.address for balancer in plan.balancers if any(b.machine == port.machine for b in balancer.backends)
        }
        pairs += [f'"{port.device}" . {address}' for address in sorted(own)]
    devices = ", ".join(f'"{port.device}"' for port in restricted)
    return [f"{device} {{ {devices} }} {device} . ip {field} != {{ {', '.join(pairs)} }} drop"]
