"""What instance templates and instances share: inputs, and the form in which the API has them."""

# ruff: noqa: D102 what a method of a kind does is said once, in `kinds.Kind`
from __future__ import annotations

import re
from typing import Any

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, One, Scope, Strings, Text
from multinic.lab.pulumi.resource_type import Inputs, Outputs
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import FLAG, metadata_items, metadata_map, optional, with_provisioned

_STARTUP = "startup-script"

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

SCHEDULING_FIELDS = (
    Field("automaticRestart", FLAG, default=True),
    Field("preemptible", FLAG, default=False),
    optional("onHostMaintenance", Text(choices=("MIGRATE", "TERMINATE"))),
    optional("provisioningModel", Text(choices=("STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"))),
    Field("instanceTerminationAction", Text(choices=("STOP", "DELETE"))),
    Field("availabilityDomain", Integer()),
    Field("minNodeCpus", Integer()),
)

SERVICE_ACCOUNT = Field(
    "serviceAccount",
    One(block(optional("email"), Field("scopes", Items(OauthScope(), is_set=True), required=True))),
    "serviceAccounts",
)

CONFIDENTIAL = Field(
    "confidentialInstanceConfig",
    block(
        Field("enableConfidentialCompute", FLAG),
        Field("confidentialInstanceType", Text(choices=("SEV", "SEV_SNP", "TDX"))),
    ),
)

ADVANCED = Field(
    "advancedMachineFeatures",
    block(
        Field("threadsPerCore", Integer()),
        Field("visibleCoreCount", Integer()),
        Field("turboMode"),
        Field("enableNestedVirtualization", FLAG),
    ),
)

TIER = Field(
    "networkPerformanceConfig",
    block(Field("totalEgressBandwidthTier", Text(choices=("DEFAULT", "TIER_1")), required=True)),
)

MACHINE = (
    # Metadata becomes a list on the wire, and the startup script one of its items: see `machine`.
    Field("metadata", Strings()),
    Field("metadataStartupScript", Text()),
    Field("tags", Items(Text(), is_set=True)),
    Field("canIpForward", FLAG, default=False),
    optional("minCpuPlatform"),
    Field("scheduling", block(*SCHEDULING_FIELDS), computed=True),
    SERVICE_ACCOUNT,
    SHIELDED,
    CONFIDENTIAL,
    TIER,
    Field("resourcePolicies", Link(form="given"), computed=True),
)
"""Inputs by the names that an instance has them by; a template has them below ``properties``."""


def machine(body: Document, inputs: Inputs, *, scheduling: Document, untagged: Document) -> Document:
    """Return what instance and template say about a machine as it is sent.

    Args:
        body: What the inputs alone became.
        inputs: The inputs.
        scheduling: What is sent where the program says nothing about it.
        untagged: What is sent as tags where there are none.
    """
    tags, given = body.get("tags"), body.get("scheduling")
    for nic in body.get("networkInterfaces", []):
        for config in nic.get("accessConfigs", []):
            # The only type there is.
            config["type"] = "ONE_TO_ONE_NAT"
    always = {"hostErrorTimeoutSeconds": None, "nodeAffinities": [None], "skipGuestOsShutdown": False}
    return {key: value for key, value in body.items() if key != "metadataStartupScript"} | {
        "labels": with_provisioned(inputs),
        "metadata": machine_metadata(inputs),
        "tags": {"items": tags} if tags else untagged,
        "scheduling": always | given if given else scheduling,
    }


def machine_metadata(inputs: Inputs) -> Document:
    """Return the metadata of inputs in the API's form, the startup script among it."""
    script = inputs.get("metadataStartupScript")
    return metadata_items(dict(inputs.get("metadata") or {}) | ({_STARTUP: script} if script else {}))


def read_machine(live: Document, inputs: Inputs) -> Document:
    """Undo what `machine` does."""
    metadata = metadata_map(live.get("metadata"))
    shown = live | {"metadata": metadata, "tags": (live.get("tags") or {}).get("items")}
    if "metadataStartupScript" in inputs:
        # The program gave the script apart from the rest: there it is looked for again.
        shown["metadataStartupScript"] = metadata.pop(_STARTUP, None)
    return shown


def machine_outputs(live: Document) -> Outputs:
    """Return the fingerprints that are outputs."""
    return {f"{name}Fingerprint": (live.get(name) or {}).get("fingerprint", "") for name in ("metadata", "tags")}
