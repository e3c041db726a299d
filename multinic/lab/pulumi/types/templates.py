"""Instance templates, global and regional."""

from __future__ import annotations

from dataclasses import replace

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, blocks
from multinic.lab.pulumi.fields import block as nested
from multinic.lab.pulumi.kinds import Integer, Link, Problem, Scope, Strings, Text
from multinic.lab.pulumi.resource_type import PROVISIONED, Inputs, Outputs, ResourceType, all_of, at_most_one
from multinic.lab.pulumi.rest import Document
from multinic.lab.pulumi.types.common import FLAG, LABELS, NAME, PROJECT, fixed
from multinic.lab.pulumi.types.vm_fields import (
    ADVANCED,
    MACHINE,
    NIC_FIELDS,
    Image,
    machine,
    machine_outputs,
    read_machine,
)

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


def _property(field: Field) -> Field:
    """Return an input of a machine as one of a template: below ``properties``, and any change makes a new template."""
    # The API adds no CPU platform and no policy to a template by itself, so one that the program takes away is gone.
    computed = field.computed and field.name not in ("minCpuPlatform", "resourcePolicies")
    return replace(field, to=f"properties.{field.path}", replaces=True, computed=computed)


_FIELDS = (
    NAME,
    PROJECT,
    Field("namePrefix", Text(), sent=False, replaces=True),
    fixed("description"),
    fixed("instanceDescription", to="properties.description"),
    *map(
        _property,
        (
            Field("machineType", required=True),
            Field("disks", _DISK, required=True),
            Field("networkInterfaces", blocks(*NIC_FIELDS)),
            LABELS,
            ADVANCED,
            *MACHINE,
        ),
    ),
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
    for disk in body["properties"]["disks"]:
        if "diskSizeGb" in disk and "source" not in disk:
            disk.setdefault("initializeParams", {})["diskSizeGb"] = disk["diskSizeGb"]
    untagged: Document = {"fingerprint": "", "items": []} if is_regional else {}
    scheduling = {"onHostMaintenance": "MIGRATE"}
    return body | {"properties": machine(body["properties"], inputs, scheduling=scheduling, untagged=untagged)}


def _unshape(live: Document, inputs: Inputs) -> Document:
    properties = read_machine(live.get("properties") or {}, inputs)
    labels = properties.get("labels") or {}
    properties["labels"] = {key: value for key, value in labels.items() if key not in PROVISIONED}
    return live | {"properties": properties}


def _extra(live: Document, scope: Scope) -> Outputs:
    properties = live.get("properties") or {}
    labels = dict(properties.get("labels") or {})
    link = links.as_v1(live.get("selfLink", ""))
    return machine_outputs(properties) | {
        "effectiveLabels": labels,
        "pulumiLabels": labels,
        "numericId": str(live.get("id", "")),
        "selfLinkUnique": f"{link}?uniqueId={live.get('id', '')}",
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
