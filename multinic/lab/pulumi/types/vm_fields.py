"""Inputs that instance templates and instances share."""

# ruff: noqa: D102 what a method of a kind does is said once, in `kinds.Kind`
from __future__ import annotations

import re
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, One, Scope, Text
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import FLAG, optional

_SHORT_SCOPES = {
    "cloud-platform": "cloud-platform",
    "compute-ro": "compute.readonly",
    "compute-rw": "compute",
    "logging-write": "logging.write",
    "monitoring": "monitoring",
    "monitoring-write": "monitoring.write",
    "storage-full": "devstorage.full_control",
    "storage-ro": "devstorage.read_only",
    "storage-rw": "devstorage.read_write",
}
_SCOPE_PREFIX = "https://www.googleapis.com/auth/"


class OauthScope(Text):
    """An OAuth scope; Google's short names stand for full ones."""

    def encode(self, value: Any, scope: Scope) -> Any:
        return _SCOPE_PREFIX + _SHORT_SCOPES[value] if value in _SHORT_SCOPES else value

    def same(self, wanted: Any, live: Any) -> bool:
        return bool(_SCOPE_PREFIX + _SHORT_SCOPES.get(wanted, "") == live or wanted == live)


class Image(Link):
    """An image: a link, ``PROJECT/IMAGE``, ``PROJECT/FAMILY``, or one of the project itself."""

    def encode(self, value: Any, scope: Scope) -> Any:
        if not value or "projects/" in value or "/images/" in value:
            return links.path_of(value)
        project, _, image = value.rpartition("/")
        base = f"projects/{project.removesuffix('/family').removesuffix('/') or scope.project}/global/images"
        for candidate in (f"{base}/{image}", f"{base}/family/{image}"):
            try:
                scope.rest.get(candidate)
            except ApiError as error:
                if not error.is_missing:
                    raise
            else:
                return candidate
        raise ApiError(404, "notFound", f"Could not find image or family {value}")

    def same(self, wanted: Any, live: Any) -> bool:
        # An image of a family is read back as itself: which one it was is not to be seen.
        return super().same(wanted, live) or not re.search(r"projects/.*/images/(?!family/)", str(wanted))


NIC_TYPES = ("GVNIC", "VIRTIO_NET", "IDPF", "MRDMA", "IRDMA")

NIC_FIELDS = (
    optional("network", Link("networks")),
    optional("subnetwork", Link("subnetworks", "region")),
    Field("subnetworkProject", sent=False),
    optional("networkIp", Text(), "networkIP"),
    Field("nicType", Text(choices=NIC_TYPES)),
    Field("queueCount", Integer()),
    optional("stackType", Text(choices=("IPV4_ONLY", "IPV4_IPV6", "IPV6_ONLY"))),
    Field("accessConfigs", blocks(optional("natIp", Text(), "natIP"), optional("networkTier"))),
    Field("aliasIpRanges", blocks(Field("ipCidrRange", required=True), Field("subnetworkRangeName"))),
)

SHIELDED = optional(
    "shieldedInstanceConfig",
    block(
        Field("enableSecureBoot", FLAG, default=False),
        Field("enableVtpm", FLAG, default=True),
        Field("enableIntegrityMonitoring", FLAG, default=True),
    ),
)

SERVICE_ACCOUNT = Field(
    "serviceAccount",
    One(block(optional("email"), Field("scopes", Items(OauthScope(), is_set=True), required=True))),
    "serviceAccounts",
)

SCHEDULING_FIELDS = (
    Field("automaticRestart", FLAG, default=True),
    Field("preemptible", FLAG, default=False),
    optional("onHostMaintenance", Text(choices=("MIGRATE", "TERMINATE"))),
    optional("provisioningModel", Text(choices=("STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"))),
    Field("instanceTerminationAction", Text(choices=("STOP", "DELETE"))),
    Field("availabilityDomain", Integer()),
    Field("minNodeCpus", Integer()),
)

CONFIDENTIAL = Field(
    "confidentialInstanceConfig",
    block(
        Field("enableConfidentialCompute", FLAG),
        Field("confidentialInstanceType", Text(choices=("SEV", "SEV_SNP", "TDX"))),
    ),
    replaces=True,
)

ADVANCED = Field(
    "advancedMachineFeatures",
    block(
        Field("threadsPerCore", Integer()),
        Field("visibleCoreCount", Integer()),
        Field("turboMode"),
        Field("enableNestedVirtualization", FLAG),
    ),
    replaces=True,
)

TIER = Field(
    "networkPerformanceConfig",
    block(Field("totalEgressBandwidthTier", Text(choices=("DEFAULT", "TIER_1")), required=True)),
    replaces=True,
)


def access_config_types(nics: list[Document]) -> list[Document]:
    """Add to external addresses the only type there is."""
    for nic in nics:
        for config in nic.get("accessConfigs", []):
            config["type"] = "ONE_TO_ONE_NAT"
    return nics


def forced_scheduling(scheduling: Document) -> Document:
    """Add what the plugin always sends along with a template's scheduling."""
    return {"hostErrorTimeoutSeconds": None, "nodeAffinities": [None], "skipGuestOsShutdown": False} | scheduling
