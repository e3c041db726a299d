"""Reserved addresses.

https://cloud.google.com/vpc/docs/reserve-static-internal-ip-address
"""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import ClassVar

from typing_extensions import override

from . import addressing
from .call import Answer
from .errors import ApiError, invalid, required
from .links import link, split
from .references import Reference
from .resource import Resource
from .rules import DISCOVERY, holds, one_of
from .store import Object

EXTERNAL = IPv4Network("203.0.113.0/24")
"""Where the lab takes "external" addresses from: a documentation range (RFC 5737); nothing is reached by them."""

RULES = (
    one_of("addressType", ("INTERNAL", "EXTERNAL"), DISCOVERY + "Address.addressType"),
    one_of(
        "purpose",
        ("GCE_ENDPOINT", "SHARED_LOADBALANCER_VIP"),
        DISCOVERY + "Address.purpose (others belong to products that the lab does not serve)",
    ),
    holds(
        "networkTier",
        "An internal IP address cannot have a network tier other than PREMIUM.",
        DISCOVERY + "Address.networkTier",
        lambda address: address["addressType"] != "INTERNAL" or address.get("networkTier", "PREMIUM") == "PREMIUM",
    ),
    holds(
        "ipVersion", "The lab serves IPv4 only.", "docs/lab-fidelity.md", lambda a: a.get("ipVersion") in (None, "IPV4")
    ),
)


class Addresses(Resource):
    """``addresses``: regional, internal (of a subnetwork) or external."""

    collection = "addresses"
    noun = "address"
    kind = "address"
    served: ClassVar = {"regions": "addresses"}
    verbs = ("insert", "get", "list", "aggregatedList", "delete", "setLabels", "testIamPermissions")
    references = (
        Reference("subnetwork", "subnetworks"),
        Reference("network", "networks", scope="global"),
    )
    defaults: ClassVar = {"addressType": "EXTERNAL", "networkTier": "PREMIUM"}
    rules = RULES

    @override
    def complete(self, key: str, value: Object) -> None:
        if value["addressType"] == "INTERNAL":
            value.setdefault("purpose", "GCE_ENDPOINT")

    @override
    def check(self, key: str, value: Object, old: Object | None) -> None:
        if value["addressType"] == "EXTERNAL":
            self._external(value)
            return
        if not value.get("subnetwork"):
            raise required("subnetwork")
        subnetwork = value["subnetwork"].removeprefix(link(""))
        if split(subnetwork).scope != split(key).scope:
            raise invalid("subnetwork", subnetwork, "The subnetwork must be in the address' region.")
        wanted = value.get("address")
        chosen = (
            addressing.claim(self.store, subnetwork, wanted, "address", own=key)
            if wanted
            else addressing.choose(self.store, subnetwork)
        )
        value["address"] = str(chosen)

    def _external(self, value: Object) -> None:
        used = {address.get("address") for _, address in self.store.everywhere("addresses")}
        free = next((str(address) for address in EXTERNAL.hosts() if str(address) not in used), None)
        if free is None:
            raise ApiError(403, "quotaExceeded", f"All external addresses of the lab ({EXTERNAL}) are reserved.")
        value["address"] = free

    @override
    def view(self, key: str, value: Object) -> Answer:
        users = [link(user) for user in self.store.users(key)]
        return {**super().view(key, value), "users": users, "status": "IN_USE" if users else "RESERVED"}
