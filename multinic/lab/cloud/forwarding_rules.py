"""Forwarding rules of internal passthrough load balancers.

https://cloud.google.com/load-balancing/docs/internal/int-tcp-udp-lb-concepts#forwarding-rule
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any, ClassVar

from typing_extensions import override

from . import addressing, references
from .errors import invalid, not_served, required
from .links import key_of, link, split
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, address_of, holds, is_port_range, one_of
from .store import Object

_DOC = "https://cloud.google.com/load-balancing/docs/internal/int-tcp-udp-lb-concepts#forwarding-rule"

RULES = (
    one_of("IPProtocol", ("TCP", "UDP", "L3_DEFAULT"), _DOC),
    holds(
        "ports",
        "Exactly one of 'ports' and 'allPorts' must be given.",
        DISCOVERY + "ForwardingRule.allPorts, ports",
        lambda rule: bool(rule.get("ports")) != bool(rule.get("allPorts")),
    ),
    holds(
        "ports",
        "At most 5 ports from 1 to 65535 may be given.",
        DISCOVERY + "ForwardingRule.ports",
        lambda rule: _ports(rule, 5),
    ),
    holds(
        "allPorts",
        "A rule with IPProtocol L3_DEFAULT must have allPorts.",
        DISCOVERY + "ForwardingRule.allPorts",
        lambda rule: rule["IPProtocol"] != "L3_DEFAULT" or bool(rule.get("allPorts")),
    ),
    holds(
        "portRange",
        "A rule of an internal passthrough load balancer has ports, not a port range.",
        DISCOVERY + "ForwardingRule.portRange",
        lambda rule: not rule.get("portRange"),
    ),
    holds(
        "networkTier",
        "Must be PREMIUM for an internal rule.",
        DISCOVERY + "ForwardingRule.networkTier",
        lambda rule: rule.get("networkTier", "PREMIUM") == "PREMIUM",
    ),
    one_of("ipVersion", ("IPV4",), "docs/lab-fidelity.md: the lab serves IPv4 only"),
)


def _ports(rule: Object, most: int) -> bool:
    ports: list[Any] = rule.get("ports", [])
    return len(ports) <= most and all(is_port_range(port) and "-" not in str(port) and int(port) for port in ports)


class ForwardingRules(Resource):
    """``forwardingRules`` with scheme INTERNAL: the address that a route's next hop is."""

    collection = "forwardingRules"
    noun = "forwarding_rule"
    kind = "forwardingRule"
    served: ClassVar = {"regions": "forwardingRules"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "delete", "setLabels")
    references = (
        Reference("backendService", "backendServices"),
        Reference("network", "networks", scope="global"),
        Reference("subnetwork", "subnetworks"),
    )
    defaults: ClassVar = {"IPProtocol": "TCP", "networkTier": "PREMIUM", "allowGlobalAccess": False}
    immutable = (
        "IPAddress",
        "IPProtocol",
        "allPorts",
        "backendService",
        "description",
        "loadBalancingScheme",
        "network",
        "ports",
        "serviceLabel",
        "subnetwork",
    )
    rules = RULES
    fingerprinted = True

    @override
    def complete(self, key: str, value: Object) -> None:
        scheme = value.get("loadBalancingScheme") or "EXTERNAL"
        if scheme != "INTERNAL":
            raise not_served(f"forwarding rules with loadBalancingScheme {scheme} (only INTERNAL)")
        if not value.get("backendService"):
            raise required("backendService")
        service = self.store.require(key_of(value["backendService"]))
        if not value.get("subnetwork"):
            raise required("subnetwork")
        network = self.cloud.subnetworks.network_link(value["subnetwork"])
        value.setdefault("network", network)
        value.setdefault("_service_network", service.get("network", network))

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        subnetwork = key_of(value["subnetwork"])
        network = self.cloud.subnetworks.network_link(subnetwork)
        if value["network"] != network:
            raise invalid("subnetwork", value["subnetwork"], f"The subnetwork is not in network '{value['network']}'.")
        if split(subnetwork).scope != split(key).scope:
            raise invalid("subnetwork", value["subnetwork"], "The subnetwork must be in the rule's region.")
        if value.pop("_service_network", network) != network:
            raise invalid("network", value["network"], "The network must be the backend service's network.")
        service = self.store.require(key_of(value["backendService"]))
        wanted = {"TCP": "TCP", "UDP": "UDP", "L3_DEFAULT": "UNSPECIFIED"}[value["IPProtocol"]]
        if service["protocol"] not in (wanted, "UNSPECIFIED"):
            raise invalid(
                "IPProtocol", value["IPProtocol"], f"The backend service's protocol {service['protocol']} does not fit."
            )
        if old is None:
            value["IPAddress"] = str(self._address(key, value, subnetwork))

    def _address(self, key: str, value: Object, subnetwork: str) -> IPv4Address:
        wanted = value.get("IPAddress")
        if not wanted:
            return addressing.choose(self.store, subnetwork)
        if address_of(wanted) is None:
            reserved = references.require(self.cloud, "IPAddress", wanted, "addresses", "own", split(key).scope)
            wanted = self.store.require(reserved)["address"]
        held = addressing.reservation(self.store, subnetwork, wanted)
        shared: frozenset[str] = frozenset()
        if held is not None:
            shared = frozenset({held})
            if self.store.require(held).get("purpose") == "SHARED_LOADBALANCER_VIP":
                shared |= {user for user in self.store.users(held) if "/forwardingRules/" in user}
        return addressing.claim(self.store, subnetwork, wanted, "IPAddress", own=key, shared=shared)

    @override
    def more_references(self, key: str, value: Object) -> set[str]:
        held = addressing.reservation(self.store, key_of(value["subnetwork"]), value["IPAddress"])
        return super().more_references(key, value) | ({held} if held else set())

    def by_address(self, network: str, address: str) -> str | None:
        """Key of the rule with that address in a network, or None."""
        for key, rule in self.store.everywhere("forwardingRules"):
            if rule["network"] == link(network) and rule["IPAddress"] == address:
                return key
        return None
