"""Cloud Routers, for the NAT of endpoints. They are kept, and nothing is translated: the lab has no internet.

https://cloud.google.com/nat/docs/overview
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from .errors import invalid, required
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, holds
from .store import Object

RULES = (
    holds(
        "nats",
        "NATs of a router need names, each its own.",
        DISCOVERY + "RouterNat.name",
        lambda router: len({nat.get("name") for nat in router.get("nats", [])} - {None}) == len(router.get("nats", [])),
    ),
    holds(
        "nats",
        "natIps belong to natIpAllocateOption MANUAL_ONLY.",
        DISCOVERY + "RouterNat.natIpAllocateOption",
        lambda router: all(
            bool(nat.get("natIps")) == (nat.get("natIpAllocateOption") == "MANUAL_ONLY")
            for nat in router.get("nats", [])
        ),
    ),
    holds(
        "nats",
        "Subnetworks are given exactly with LIST_OF_SUBNETWORKS.",
        DISCOVERY + "RouterNat.sourceSubnetworkIpRangesToNat",
        lambda router: all(
            bool(nat.get("subnetworks")) == (nat.get("sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS")
            for nat in router.get("nats", [])
        ),
    ),
)


class Routers(Resource):
    """``routers``: regional, each in one network."""

    collection = "routers"
    noun = "router"
    kind = "router"
    served: ClassVar = {"regions": "routers"}
    verbs = ("insert", "get", "list", "aggregatedList", "patch", "update", "delete")
    references = (
        Reference("network", "networks", scope="global"),
        Reference("nats[].subnetworks[].name", "subnetworks"),
        Reference("nats[].natIps[]", "addresses"),
    )
    immutable = ("network",)
    rules = RULES

    @override
    def complete(self, key: str, value: Object) -> None:
        if not value.get("network"):
            raise required("network")
        if value.get("bgp", {}).get("asn"):
            raise invalid("bgp.asn", value["bgp"]["asn"], "The lab serves routers for NAT only, without BGP.")
        for nat in value.get("nats", []):
            nat.setdefault("type", "PUBLIC")
            nat.setdefault("natIpAllocateOption", "AUTO_ONLY")
