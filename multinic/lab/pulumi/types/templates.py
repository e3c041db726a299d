"""Instance templates, global and regional."""

from __future__ import annotations

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, blocks
from multinic.lab.pulumi.fields import block as nested
from multinic.lab.pulumi.kinds import Integer, Items, Link, Problem, Scope, Strings, Text
from multinic.lab.pulumi.resource_type import PROVISIONED, Inputs, Outputs, ResourceType, all_of, at_most_one
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import (
    FLAG,
    LABELS,
    NAME,
    PROJECT,
    fixed,
    metadata_items,
    metadata_map,
    with_provisioned,
)
from multinic.lab.pulumi.types.vm_fields import (
    ADVANCED,
    CONFIDENTIAL,
    NIC_FIELDS,
    SCHEDULING_FIELDS,
    SERVICE_ACCOUNT,
    SHIELDED,
    TIER,
    Image,
    access_config_types,
    forced_scheduling,
)

_STARTUP = "startup-script"
LONGEST_PREFIX = 54

_DISK = blocks(
    Field("sourceImage", Image(), "initializeParams.sourceImage", computed=True),
    Field("diskType", Text(), "initializeParams.diskType", default="pd-standard"),
    Field("diskSizeGb", Integer(as_text=True), "diskSizeGb", computed=True),
    Field("diskName", Text(), "initializeParams.diskName"),
    Field("labels", Strings(), "initializeParams.labels"),
    Field("autoDelete", FLAG, default=True),
    Field("boot", FLAG, computed=True),
    Field("deviceName", computed=True),
    Field("interface", computed=True),
    Field("mode", computed=True),
    Field("type", computed=True),
    Field("source", Link(form="given")),
    Field("diskEncryptionKey", nested(Field("kmsKeySelfLink", Link(), "kmsKeyName"))),
)


def _at(name: str) -> str:
    return f"properties.{name}"


_FIELDS = (
    NAME,
    PROJECT,
    Field("namePrefix", Text(), sent=False, replaces=True),
    fixed("description"),
    fixed("instanceDescription", to=_at("description")),
    Field("machineType", to=_at("machineType"), required=True, replaces=True),
    Field("minCpuPlatform", to=_at("minCpuPlatform"), replaces=True),
    Field("canIpForward", FLAG, _at("canIpForward"), replaces=True, default=False),
    Field("disks", _DISK, _at("disks"), required=True, replaces=True),
    Field("networkInterfaces", blocks(*NIC_FIELDS), _at("networkInterfaces"), replaces=True),
    # Metadata becomes a list on the wire, and the startup script one of its items: see `_shape`.
    Field("metadata", Strings(), _at("metadata"), replaces=True),
    Field("metadataStartupScript", Text(), _at("metadataStartupScript"), replaces=True),
    Field("labels", LABELS.kind, _at("labels"), replaces=True),
    Field("tags", Items(Text(), is_set=True), _at("tags"), replaces=True),
    Field("scheduling", nested(*SCHEDULING_FIELDS), _at("scheduling"), replaces=True, computed=True),
    Field("serviceAccount", SERVICE_ACCOUNT.kind, _at("serviceAccounts"), replaces=True),
    Field("shieldedInstanceConfig", SHIELDED.kind, _at("shieldedInstanceConfig"), replaces=True, computed=True),
    Field("networkPerformanceConfig", TIER.kind, _at("networkPerformanceConfig"), replaces=True),
    Field("confidentialInstanceConfig", CONFIDENTIAL.kind, _at("confidentialInstanceConfig"), replaces=True),
    Field("advancedMachineFeatures", ADVANCED.kind, _at("advancedMachineFeatures"), replaces=True),
    Field("resourcePolicies", Link(form="given"), _at("resourcePolicies"), replaces=True),
)


def _check_prefix(inputs: Inputs) -> list[Problem]:
    prefix = str(inputs.get("namePrefix") or "")
    if len(prefix) <= LONGEST_PREFIX:
        return []
    return [Problem("namePrefix", f'"{prefix}" cannot be longer than {LONGEST_PREFIX} characters')]


def _check_boot(inputs: Inputs) -> list[Problem]:
    disks = inputs.get("disks")
    later = enumerate(disks[1:], 1) if isinstance(disks, list) else ()
    return [
        Problem(f"disks[{index}].boot", "Only the first disk specified in instance_template can be the boot disk")
        for index, disk in later
        if isinstance(disk, dict) and disk.get("boot") is True
    ]


def _shape(body: Document, inputs: Inputs, scope: Scope, *, is_regional: bool) -> Document:
    properties: Document = body["properties"]
    metadata = dict(properties.pop("metadata", {}))
    script = properties.pop("metadataStartupScript", None)
    if script:
        metadata[_STARTUP] = script
    tags = properties.pop("tags", None)
    untagged: Document = {"fingerprint": "", "items": []} if is_regional else {}
    scheduling = properties.get("scheduling")
    for disk in properties["disks"]:
        if "diskSizeGb" in disk and "source" not in disk:
            disk.setdefault("initializeParams", {})["diskSizeGb"] = disk["diskSizeGb"]
    access_config_types(properties.get("networkInterfaces", []))
    properties |= {
        "labels": with_provisioned(inputs),
        "metadata": metadata_items(metadata),
        "tags": {"items": tags} if tags else untagged,
        "scheduling": forced_scheduling(scheduling) if scheduling else {"onHostMaintenance": "MIGRATE"},
    }
    return body


def _unshape(live: Document, inputs: Inputs) -> Document:
    properties = dict(live.get("properties") or {})
    metadata = metadata_map(properties.get("metadata"))
    if "metadataStartupScript" in inputs:
        # The program gave the script apart from the rest: there it is looked for again.
        properties["metadataStartupScript"] = metadata.pop(_STARTUP, None)
    labels = properties.get("labels") or {}
    properties |= {
        "metadata": metadata,
        "tags": (properties.get("tags") or {}).get("items"),
        "labels": {key: value for key, value in labels.items() if key not in PROVISIONED},
    }
    return live | {"properties": properties}


def _extra(live: Document, scope: Scope) -> Outputs:
    properties = live.get("properties") or {}
    labels = dict(properties.get("labels") or {})
    link = links.as_v1(live.get("selfLink", ""))
    return {
        "effectiveLabels": labels,
        "pulumiLabels": labels,
        "numericId": str(live.get("id", "")),
        "selfLinkUnique": f"{link}?uniqueId={live.get('id', '')}",
        "metadataFingerprint": (properties.get("metadata") or {}).get("fingerprint", ""),
        "tagsFingerprint": (properties.get("tags") or {}).get("fingerprint", ""),
    }


_COMPUTED = (
    "selfLink",
    "creationTimestamp",
    "numericId",
    "metadataFingerprint",
    "tagsFingerprint",
    "effectiveLabels",
    "pulumiLabels",
)
_CHECK = all_of(_check_prefix, _check_boot, at_most_one("name", "namePrefix"))

INSTANCE_TEMPLATE = ResourceType(
    pulumi_type="gcp:compute/instanceTemplate:InstanceTemplate",
    collection="projects/{project}/global/instanceTemplates",
    fields=Fields((*_FIELDS, Field("region", sent=False, replaces=True))),
    computed=(*_COMPUTED, "selfLinkUnique"),
    check=_CHECK,
    shape=lambda body, inputs, scope: _shape(body, inputs, scope, is_regional=False),
    unshape=_unshape,
    more=_extra,
    # The plugin reads a new global template by its number, so that a namesake made meanwhile is not taken for it.
    address=lambda place, operation: f"{place}/{operation['targetId']}",
    view={"view": "FULL"},
)

REGION_INSTANCE_TEMPLATE = ResourceType(
    pulumi_type="gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
    collection="projects/{project}/regions/{region}/instanceTemplates",
    fields=Fields((*_FIELDS, Field("region", sent=False, replaces=True))),
    computed=_COMPUTED,
    check=_CHECK,
    shape=lambda body, inputs, scope: _shape(body, inputs, scope, is_regional=True),
    unshape=_unshape,
    more=lambda live, scope: {key: value for key, value in _extra(live, scope).items() if key != "selfLinkUnique"},
    view={"view": "FULL"},
)

TYPES = (INSTANCE_TEMPLATE, REGION_INSTANCE_TEMPLATE)
