"""VPC networks.

https://cloud.google.com/vpc/docs/vpc
"""

from __future__ import annotations

import secrets
from typing import ClassVar

from typing_extensions import override

from .call import Answer, Call, Handler
from .links import key_of, link
from .resource import Resource
from .rules import between, holds
from .store import Object

AUTO_RANGES = {
    "us-central1": "10.128.0.0/20",
    "europe-west1": "10.132.0.0/20",
    "us-west1": "10.138.0.0/20",
    "us-east1": "10.142.0.0/20",
    "us-west2": "10.168.0.0/20",
}
"""Ranges of an auto mode network: https://cloud.google.com/vpc/docs/subnets#ip-ranges"""

RULES = (
    between("mtu", 1300, 8896, "https://cloud.google.com/vpc/docs/mtu"),
    holds(
        "autoCreateSubnetworks",
        "Legacy networks can no longer be created: set it to true (auto mode) or false (custom mode).",
        "https://cloud.google.com/vpc/docs/legacy",
        lambda network: "autoCreateSubnetworks" in network,
    ),
    holds(
        "enableUlaInternalIpv6",
        "The lab serves IPv4 only.",
        "docs/lab-fidelity.md",
        lambda network: not network.get("enableUlaInternalIpv6"),
    ),
)


class Networks(Resource):
    """``networks``: global; a new one gets its default route, an auto mode one its subnetworks."""

    collection = "networks"
    noun = "network"
    kind = "network"
    served: ClassVar = {"global": "networks"}
    verbs = ("insert", "get", "list", "patch", "delete")
    defaults: ClassVar = {
        "mtu": 1460,
        "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
        "routingConfig": {"routingMode": "REGIONAL"},
    }
    immutable = ("autoCreateSubnetworks", "description", "enableUlaInternalIpv6", "internalIpv6Range", "networkProfile")
    rules = RULES

    @override
    def handlers(self) -> dict[str, Handler]:
        return {"getEffectiveFirewalls": self.effective_firewalls}

    def effective_firewalls(self, call: Call) -> Answer:
        """The network's own rules; policies, which the lab does not have, would stand beside them."""
        key = self.target(call)
        self.store.require(key)
        mine = [user for user in self.store.users(key) if "/firewalls/" in user]
        return {"firewalls": [self.cloud.firewalls.view(user, self.store.require(user)) for user in sorted(mine)]}

    @override
    def complete(self, key: str, value: Object) -> None:
        value["routingConfig"].setdefault("routingMode", "REGIONAL")
        value["selfLinkWithId"] = link(key.rpartition("/")[0] + "/" + value["id"])

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        if old is not None and old["mtu"] != value["mtu"]:
            # https://cloud.google.com/vpc/docs/change-mtu-vpc-network: VMs must be stopped or they keep their old MTU;
            # the API accepts the change. The lab's NICs get theirs when a VM starts.
            for _, instance in self.store.everywhere("instances"):
                if any(key_of(nic["network"]) == key for nic in instance.get("networkInterfaces", [])):
                    value["_mtuChanged"] = True

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        if old is not None:
            return
        self._default_route(key, value["name"])
        if value["autoCreateSubnetworks"]:
            for region, cidr in AUTO_RANGES.items():
                subnet = {"name": value["name"], "network": link(key), "ipCidrRange": cidr, "_owner": key}
                self.cloud.subnetworks.create(self.cloud.subnetworks.key(f"regions/{region}", value["name"]), subnet)

    def _default_route(self, key: str, name: str) -> None:
        # https://cloud.google.com/vpc/docs/routes#routingpacketsinternet: each new network has one, priority 1000
        route = {
            "name": f"default-route-{secrets.token_hex(8)}",
            "description": "Default route to the Internet.",
            "network": link(key),
            "destRange": "0.0.0.0/0",
            "priority": 1000,
            "nextHopGateway": link(f"projects/{self.project}/global/gateways/default-internet-gateway"),
            "_owner": key,
        }
        self.cloud.routes.create(self.cloud.routes.key("global", str(route["name"])), route)

    @override
    def view(self, key: str, value: Object) -> Answer:
        subnetworks = [link(user) for user in self.store.users(key) if "/subnetworks/" in user]
        return {**super().view(key, value), "subnetworks": subnetworks}

    @override
    def removed(self, key: str, value: Object) -> None:
        self.cloud.fabric.network_removed(key)
