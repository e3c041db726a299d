"""Whether the firewall lets a fleet do its work: probes and routed packets must reach the routers."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from multinic.operate import firewall, links
from multinic.operate.firewall import Party, Service
from multinic.operate.fleet import Fleet, Router
from multinic.operate.project import BAD, GOOD, UNKNOWN, WARNING, Finding
from multinic.operate.topology import Topology

PROBE_RANGES = ("35.191.0.0/16", "130.211.0.0/22")
"""https://docs.cloud.google.com/load-balancing/docs/health-check-concepts"""


def probes(found: Fleet, around: Topology, checks: dict[str, Any]) -> list[Finding]:
    """Whether the firewall lets the health checks' probes reach the routers."""
    if not found.routers:
        return [Finding("firewall for probes", UNKNOWN, "the fleet has no VM to judge it by")]
    router, findings = found.routers[0], []
    # Traffic probes arrive at the load balancer's address in each network, heal probes at nic0.
    wanted = [(hop.network_link, hop.check, "traffic") for hop in found.hops]
    first = router.nics[0].network if router.nics else ""
    wanted += [(first, check, "heal") for check in sorted({group.check for group in found.groups if group.check})]
    for network, check, role in wanted:
        port = checks[check].http_health_check.port or 80 if check in checks else 80
        denied = []
        for source in PROBE_RANGES:
            decision = firewall.decide(
                around.rules,
                network,
                _party(router, network),
                Party(IPv4Network(source)),
                Service("tcp", port),
                ingress=True,
            )
            if not decision.allowed:
                denied.append(f"{source} ({decision.title})")
        what = f"firewall of {links.name(network)} for {role} probes, tcp:{port}"
        cure = f"allow it from {', '.join(PROBE_RANGES)} to {router.account or 'the routers'}, as `pulumi up` does"
        findings.append(Finding(what, BAD, ", ".join(denied), cure) if denied else Finding(what, GOOD))
    return findings


def routed(found: Fleet, around: Topology) -> list[Finding]:
    """Whether the firewall lets routed packets of all protocols into the routers, in both directions."""
    if not found.routers:
        return []
    router, findings = found.routers[0], []
    ranges = sorted({route.destination for route in found.own_routes}, key=lambda text: IPv4Network(text))
    for hop in found.hops:
        mine = _party(router, hop.network_link)
        denied = [
            source
            for source in ranges
            if not firewall.decide(
                around.rules, hop.network_link, mine, Party(IPv4Network(source)), Service("all"), ingress=True
            ).allowed
        ]
        what = f"firewall of {hop.network} for routed packets"
        cure = "allow all protocols from these ranges to the routers; `pulumi up` makes the rule"
        findings.append(
            Finding(what, BAD, f"not let in: {', '.join(denied)}", cure)
            if denied
            else Finding(what, GOOD, ", ".join(ranges))
        )
    return findings


def _party(router: Router, network: str) -> Party:
    address = next((nic.address for nic in router.nics if nic.network == network), "0.0.0.0")
    return Party.at(address, router.tags, router.account)


def policies(around: Topology) -> list[Finding]:
    """Firewall policies, whose rules are not judged here."""
    findings = [
        Finding(
            f"firewall policies of {links.name(one.network)}",
            UNKNOWN if one.unknown else WARNING,
            one.unknown or one.title,
            "grant compute.networks.getEffectiveFirewalls"
            if one.unknown
            else f"its rules are not judged here: see that they let {', '.join(PROBE_RANGES)} and the routed ranges in",
        )
        for one in around.policies
    ]
    return findings or [Finding("firewall policies", GOOD, "none but VPC firewall rules decide")]
