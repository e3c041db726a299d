"""Static routes (and the generated ones).

https://cloud.google.com/vpc/docs/static-routes
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import ClassVar

from typing_extensions import override

from . import references
from .call import Answer
from .errors import ApiError, invalid, not_served, required
from .links import key_of, link
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, address_of, between, holds, network_of
from .store import Object

_SR = "https://cloud.google.com/vpc/docs/static-routes"
_NEXT_HOPS = (
    "nextHopGateway",
    "nextHopIlb",
    "nextHopInstance",
    "nextHopIp",
    "nextHopNetwork",
    "nextHopVpnTunnel",
    "nextHopPeering",
    "nextHopHub",
)

RULES = (
    holds(
        "destRange",
        "Must be a CIDR address range without host bits.",
        DISCOVERY + "Route.destRange",
        lambda route: network_of(route["destRange"]) is not None,
    ),
    between("priority", 0, 65535, DISCOVERY + "Route.priority"),
    holds(
        "nextHopIlb",
        "Exactly one next hop must be given.",
        _SR + "#static-route-next-hops",
        lambda route: sum(name in route for name in _NEXT_HOPS) == 1,
    ),
    holds(
        "tags",
        "A route has at most 256 network tags.",
        "https://cloud.google.com/vpc/docs/quota#per_network",
        lambda route: len(route.get("tags", [])) <= 256,
    ),
)


class Routes(Resource):
    """``routes``: global, each in one network. Never changed: only made and deleted."""

    collection = "routes"
    noun = "route"
    kind = "route"
    served: ClassVar = {"global": "routes"}
    verbs = ("insert", "get", "list", "delete", "testIamPermissions")
    references = (Reference("network", "networks", scope="global"),)
    rules = RULES

    @override
    def complete(self, key: str, value: Object) -> None:
        for name in ("destRange", "network"):
            if not value.get(name):
                raise required(name)
        if value.get("priority") is None:
            value["priority"] = 1000
        if "/" not in value["destRange"] and address_of(value["destRange"]):
            value["destRange"] += "/32"
        for name in ("nextHopInstance", "nextHopIp", "nextHopVpnTunnel", "nextHopPeering", "nextHopHub"):
            if name in value:
                raise not_served(f"routes with {name} (only nextHopIlb and nextHopGateway)")
        if "nextHopGateway" in value:
            if not value["nextHopGateway"].endswith("/gateways/default-internet-gateway"):
                raise invalid("nextHopGateway", value["nextHopGateway"], "Must be default-internet-gateway.")
            value["nextHopGateway"] = link(f"projects/{self.project}/global/gateways/default-internet-gateway")
        if "nextHopIlb" in value:
            self._balancer(value)
        value["routeType"] = "SUBNET" if "nextHopNetwork" in value else "STATIC"

    def _balancer(self, value: Object) -> None:
        # An address may also be that of a rule in a peered network, which the lab does not have:
        # https://cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview
        text = value["nextHopIlb"]
        if address_of(text) is not None:
            if self.cloud.forwarding_rules.by_address(key_of(value["network"]), text) is None:
                raise invalid(
                    "nextHopIlb", text, "No internal forwarding rule of the route's network has this address."
                )
            return
        rule = references.require(self.cloud, "nextHopIlb", text, "forwardingRules", "own", "global")
        if self.store.require(rule)["network"] != value["network"]:
            raise invalid("nextHopIlb", text, "The forwarding rule must be in the route's network.")
        value["nextHopIlb"] = link(rule)

    @override
    def more_references(self, key: str, value: Object) -> set[str]:
        held = super().more_references(key, value)
        if "nextHopIlb" in value:
            rule = self.rule_of(value)
            held |= {rule} if rule else set()
        return held

    def rule_of(self, value: Object) -> str | None:
        """Key of the forwarding rule that is a route's next hop; None for another kind, or one that is gone."""
        text = value.get("nextHopIlb")
        if text is None:
            return None
        if address_of(text) is not None:
            return self.cloud.forwarding_rules.by_address(key_of(value["network"]), text)
        return key_of(text) if self.store.get(key_of(text)) else None

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        if "nextHopNetwork" in value:
            return
        destination = IPv4Network(value["destRange"])
        # https://cloud.google.com/vpc/docs/routes#subnet-routes: never equal to a subnet route or inside one
        for subnetwork, subnet in self.store.everywhere("subnetworks"):
            if subnet["network"] == value["network"] and destination.subnet_of(IPv4Network(subnet["ipCidrRange"])):
                raise ApiError(
                    400,
                    "invalid",
                    f"Invalid value for field 'resource.destRange': '{destination}'. The destination range is in the "
                    f"range of the subnetwork '{subnetwork}' ({subnet['ipCidrRange']}).",
                )
        # https://cloud.google.com/load-balancing/docs/internal/ilb-next-hop-overview#considerations
        if "nextHopIlb" in value and not value.get("tags"):
            for other_key, other in self.store.everywhere("routes"):
                same = all(other.get(name) == value[name] for name in ("network", "destRange", "priority"))
                if same and "nextHopIlb" in other and not other.get("tags"):
                    raise ApiError(
                        400,
                        "invalid",
                        f"Invalid value for field 'resource.nextHopIlb': '{value['nextHopIlb']}'. The route "
                        f"'{other_key}' has the same destination and priority and a load balancer as next hop.",
                    )

    @override
    def refuse_if_used(self, key: str) -> None:
        super().refuse_if_used(key)
        if "nextHopNetwork" in self.store.require(key):
            raise invalid("name", key, "The local subnetwork route cannot be deleted.")

    @override
    def view(self, key: str, value: Object) -> Answer:
        answer = super().view(key, value)
        if "nextHopIlb" in value and self.rule_of(value) is None:
            answer["warnings"] = [
                {
                    "code": "NEXT_HOP_ADDRESS_NOT_ASSIGNED",
                    "message": "Next hop is not an internal forwarding rule any more; matching packets are dropped.",
                    "data": [{"key": "route", "value": value["name"]}],
                }
            ]
        return answer
