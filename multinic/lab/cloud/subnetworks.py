"""Subnetworks.

https://cloud.google.com/vpc/docs/subnets
"""

from __future__ import annotations

import secrets
from ipaddress import IPv4Network
from typing import ClassVar

from typing_extensions import override

from . import addressing
from .call import Answer, Call, Handler
from .errors import ApiError, invalid, required
from .links import key_of, link
from .references import Reference
from .resource import Resource
from .rules import at_most, holds, network_of, one_of
from .store import Object

_SUBNETS = "https://cloud.google.com/vpc/docs/subnets"

PROHIBITED = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "199.36.153.4/30",
        "199.36.153.8/30",
    )
)
"""https://cloud.google.com/vpc/docs/subnets#prohibited-ipv4-subnets"""

RULES = (
    holds(
        "ipCidrRange",
        "Must be a CIDR address range that is contained in the RFC 4632 form, without host bits.",
        _SUBNETS + "#valid-ranges",
        lambda subnet: network_of(subnet.get("ipCidrRange")) is not None,
    ),
    holds(
        "ipCidrRange",
        "The prefix length must be between 4 and 29.",
        _SUBNETS + "#ip-ranges",
        lambda subnet: 4 <= IPv4Network(subnet["ipCidrRange"]).prefixlen <= 29,
    ),
    holds(
        "ipCidrRange",
        "The range overlaps one that Google keeps for itself.",
        _SUBNETS + "#prohibited-ipv4-subnets",
        lambda subnet: not any(IPv4Network(subnet["ipCidrRange"]).overlaps(kept) for kept in PROHIBITED),
    ),
    at_most("secondaryIpRanges", 170, "https://cloud.google.com/vpc/docs/quota#per_network"),
    one_of("stackType", ("IPV4_ONLY",), "docs/lab-fidelity.md: the lab serves IPv4 only"),
    one_of("purpose", ("PRIVATE",), "docs/lab-fidelity.md: ordinary subnetworks only"),
)


class Subnetworks(Resource):
    """``subnetworks``: regional, one IPv4 range each, and a subnet route that belongs to it."""

    collection = "subnetworks"
    noun = "subnetwork"
    kind = "subnetwork"
    served: ClassVar = {"regions": "subnetworks"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "delete", "testIamPermissions")
    references = (Reference("network", "networks", scope="global"),)
    defaults: ClassVar = {
        "privateIpGoogleAccess": False,
        "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
        "purpose": "PRIVATE",
        "stackType": "IPV4_ONLY",
    }
    immutable = ("network", "description", "purpose", "ipCidrRange")
    rules = RULES
    fingerprinted = True

    @override
    def handlers(self) -> dict[str, Handler]:
        return {
            "expandIpCidrRange": self.expand,
            "setPrivateIpGoogleAccess": self.set_google_access,
            "listUsable": self.usable,
        }

    @override
    def complete(self, key: str, value: Object) -> None:
        if not value.get("network"):
            raise required("network")
        if not value.get("ipCidrRange"):
            raise required("ipCidrRange")
        subnet = network_of(value["ipCidrRange"])
        if subnet is not None and subnet.prefixlen <= 30:
            value["gatewayAddress"] = str(addressing.gateway(subnet))

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        ranges = [("ipCidrRange", IPv4Network(value["ipCidrRange"]))]
        for index, secondary in enumerate(value.get("secondaryIpRanges", [])):
            field = f"secondaryIpRanges[{index}].ipCidrRange"
            subnet = network_of(secondary.get("ipCidrRange"))
            if subnet is None:
                raise invalid(field, secondary.get("ipCidrRange"), "Must be a CIDR address range without host bits.")
            ranges.append((field, subnet))
        names = [secondary.get("rangeName") for secondary in value.get("secondaryIpRanges", [])]
        if None in names or len(set(names)) < len(names):
            raise invalid("secondaryIpRanges", names, "Each secondary range needs a name of its own.")
        for index, (field, subnet) in enumerate(ranges):
            for _, other in ranges[:index]:
                if subnet.overlaps(other):
                    raise invalid(field, str(subnet), f"The range overlaps the subnetwork's own range {other}.")
            self._refuse_overlap(key, value, field, subnet)

    def _refuse_overlap(self, key: str, value: Object, field: str, subnet: IPv4Network) -> None:
        # Ranges of one network never overlap: https://cloud.google.com/vpc/docs/subnets#manually_created_subnet_ip_ranges
        for other_key, other in self.store.everywhere("subnetworks"):
            if other_key == key or other["network"] != value["network"]:
                continue
            taken = [other["ipCidrRange"], *(s["ipCidrRange"] for s in other.get("secondaryIpRanges", []))]
            for text in taken:
                if IPv4Network(text).overlaps(subnet):
                    raise ApiError(
                        400,
                        "invalid",
                        f"Invalid IPCidrRange: {subnet} conflicts with existing subnetwork "
                        f"{addressing.describe(other)} ({text}).",
                    )
        # A static route cannot have a destination inside a subnet: https://cloud.google.com/vpc/docs/static-routes
        for route_key, route in self.store.everywhere("routes"):
            static = route["network"] == value["network"] and "nextHopNetwork" not in route
            if static and IPv4Network(route["destRange"]).subnet_of(subnet):
                raise invalid(
                    field, str(subnet), f"The range contains the destination of the existing route '{route_key}'."
                )

    @override
    def changed(self, key: str, value: Object, old: Object | None) -> None:
        if old is not None and old["ipCidrRange"] == value["ipCidrRange"]:
            return
        for owned in self.owned(key):
            self.store.remove(owned)
        route = {
            "name": f"default-route-r-{secrets.token_hex(8)}",
            "description": f"Default local route to the subnetwork {value['ipCidrRange']}.",
            "network": value["network"],
            "destRange": value["ipCidrRange"],
            "priority": 0,
            "nextHopNetwork": value["network"],
            "_owner": key,
        }
        self.cloud.routes.create(self.cloud.routes.key("global", str(route["name"])), route)

    @override
    def refuse_if_used(self, key: str) -> None:
        super().refuse_if_used(key)
        if self.store.require(key).get("_owner"):
            raise invalid("name", key, "Subnetworks of an auto mode network cannot be deleted.")

    def expand(self, call: Call) -> Answer:
        """Grows the primary range.

        https://cloud.google.com/vpc/docs/create-modify-vpc-networks#expand-subnet
        """
        key = self.target(call)
        old = self.store.require(key)
        wider = network_of(call.body.get("ipCidrRange"))
        if (
            wider is None
            or not IPv4Network(old["ipCidrRange"]).subnet_of(wider)
            or wider.prefixlen >= int(old["ipCidrRange"].rpartition("/")[2])
        ):
            raise invalid(
                "ipCidrRange",
                call.body.get("ipCidrRange"),
                f"Must be a larger range that contains {old['ipCidrRange']}.",
            )
        self._change(key, {**old, "ipCidrRange": str(wider)}, old)
        return self.cloud.operations.done("expandIpCidrRange", call.scope, key)

    def _change(self, key: str, value: Object, old: Object) -> None:
        self.complete(key, value)
        for rule in self.rules:
            rule.apply(value)
        self.check(key, value, old)
        self.stamp(value)
        self.store.put(key, value)
        self.changed(key, value, old)

    def set_google_access(self, call: Call) -> Answer:
        """Private Google Access, which the lab only notes."""
        key = self.target(call)
        value = {**self.store.require(key), "privateIpGoogleAccess": bool(call.body.get("privateIpGoogleAccess"))}
        self.stamp(value)
        self.store.put(key, value)
        return self.cloud.operations.done("setPrivateIpGoogleAccess", call.scope, key)

    def usable(self, call: Call) -> Answer:
        """All subnetworks, as those see them who may use them: in the lab everybody may."""
        items = [
            {name: value[name] for name in ("ipCidrRange", "network", "purpose", "stackType")}
            | {"subnetwork": link(key), "secondaryIpRanges": value.get("secondaryIpRanges")}
            for key, value in self.store.everywhere("subnetworks")
        ]
        path = f"projects/{self.project}/aggregated/subnetworks/listUsable"
        return {"kind": "compute#usableSubnetworksAggregatedList", "id": path, "items": items, "selfLink": link(path)}

    def network_key(self, subnetwork: str) -> str:
        """Key of the network that a subnetwork is in."""
        return key_of(self.store.require(key_of(subnetwork))["network"])

    def network_link(self, subnetwork: str) -> str:
        """Link of the network that a subnetwork is in."""
        return link(self.network_key(subnetwork))
