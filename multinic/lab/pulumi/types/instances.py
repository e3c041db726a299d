"""Single VMs."""

from __future__ import annotations

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Items, Link, Scope, Strings, Text
from multinic.lab.pulumi.resource_type import Change, Inputs, Outputs, ResourceType
from multinic.lab.pulumi.rest import ApiError, Document
from multinic.lab.pulumi.types.common import (
    DELETION_POLICY,
    FLAG,
    LABELS,
    NAME,
    PROJECT,
    ZONE,
    fixed,
    metadata_items,
    metadata_map,
    optional,
    with_provisioned,
)
from multinic.lab.pulumi.types.vm_fields import (
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

_BOOT_DISK = block(
    Field("autoDelete", FLAG, default=True),
    optional("deviceName"),
    Field("mode", Text(choices=("READ_WRITE", "READ_ONLY")), default="READ_WRITE"),
    optional("source", Link("disks", "zone")),
    Field(
        "initializeParams",
        block(
            optional("image", Image(), "sourceImage"),
            optional("size", Integer(as_text=True), "diskSizeGb"),
            optional("type", Link("diskTypes", "zone"), "diskType"),
            Field("labels", Strings()),
        ),
        computed=True,
    ),
)

_FIELDS = (
    NAME,
    PROJECT,
    ZONE,
    DELETION_POLICY,
    LABELS,
    Field("machineType", Link("machineTypes", "zone"), required=True),
    Field("bootDisk", _BOOT_DISK, required=True, replaces=True),
    Field("networkInterfaces", blocks(*NIC_FIELDS), required=True, replaces=True),
    Field("metadata", Strings()),
    # "forces the instance to be recreated": the plugin's documentation of this input.
    Field("metadataStartupScript", replaces=True),
    Field("tags", Items(Text(), is_set=True)),
    Field("canIpForward", FLAG, default=False),
    Field("deletionProtection", FLAG, default=False),
    Field("allowStoppingForUpdate", FLAG, sent=False),
    Field("description"),
    Field("desiredStatus", Text(choices=("RUNNING", "TERMINATED", "SUSPENDED")), sent=False),
    fixed("hostname"),
    optional("minCpuPlatform"),
    Field("scheduling", block(*SCHEDULING_FIELDS), computed=True),
    SERVICE_ACCOUNT,
    SHIELDED,
    CONFIDENTIAL,
    TIER,
    Field("resourcePolicies", Link(form="given"), computed=True),
)


def _shape(body: Document, inputs: Inputs, _scope: Scope) -> Document:
    disk = {"boot": True} | body.pop("bootDisk")
    disk.pop("deviceName", None)
    metadata = dict(body.pop("metadata", {}))
    script = body.pop("metadataStartupScript", None)
    if script:
        metadata[_STARTUP] = script
    tags = body.pop("tags", None)
    access_config_types(body["networkInterfaces"])
    scheduling = body.get("scheduling")
    return body | {
        "disks": [disk],
        "labels": with_provisioned(inputs),
        "metadata": metadata_items(metadata),
        "params": {},
        "scheduling": forced_scheduling(scheduling) if scheduling else {"automaticRestart": True},
        "tags": {"items": tags} if tags else {},
    }


def _unshape(live: Document, inputs: Inputs) -> Document:
    metadata = metadata_map(live.get("metadata"))
    shown = dict(live)
    if "metadataStartupScript" in inputs:
        shown["metadataStartupScript"] = metadata.pop(_STARTUP, None)
    boot = next((dict(disk) for disk in live.get("disks", []) if disk.get("boot")), {})
    # What the disk was made from is on the disk and not on the VM: the program's word stands.
    boot.pop("initializeParams", None)
    if "source" not in (inputs.get("bootDisk") or {}):
        boot.pop("source", None)
    given = (inputs.get("bootDisk") or {}).get("initializeParams")
    if isinstance(given, dict):
        names = {"image": "sourceImage", "size": "diskSizeGb", "type": "diskType", "labels": "labels"}
        boot["initializeParams"] = {names[key]: value for key, value in given.items()}
    return shown | {"metadata": metadata, "tags": (live.get("tags") or {}).get("items"), "bootDisk": boot}


def _extra(live: Document, _scope: Scope) -> Outputs:
    nics = [
        {"name": nic.get("name", ""), "networkIp": nic.get("networkIP", "")} | _nic_links(nic)
        for nic in live.get("networkInterfaces", [])
    ]
    return {
        "instanceId": str(live.get("id", "")),
        "currentStatus": live.get("status", ""),
        "cpuPlatform": live.get("cpuPlatform", ""),
        "metadataFingerprint": (live.get("metadata") or {}).get("fingerprint", ""),
        "tagsFingerprint": (live.get("tags") or {}).get("fingerprint", ""),
        "networkInterfaces": nics,
    }


def _nic_links(nic: Document) -> Document:
    found: Document = {key: links.as_v1(nic[key]) for key in ("network", "subnetwork") if key in nic}
    found |= {key: nic[key] for key in ("nicType", "queueCount", "stackType") if key in nic}
    configs = [{"natIp": config.get("natIP", "")} for config in nic.get("accessConfigs", [])]
    return found | ({"accessConfigs": configs} if configs else {})


_CHANGEABLE = {
    "metadata",
    "tags",
    "labels",
    "deletionProtection",
    "desiredStatus",
    "allowStoppingForUpdate",
    "deletionPolicy",
}


def _update(change: Change) -> None:
    beyond = sorted(change.changed - _CHANGEABLE)
    if beyond:
        raise ApiError(
            0, "", f"the lab cannot change {', '.join(beyond)} of an instance in place: delete it and make it anew"
        )
    live = change.live
    if change.touches("metadata"):
        metadata = dict(change.new.get("metadata") or {})
        if change.new.get("metadataStartupScript"):
            metadata[_STARTUP] = change.new["metadataStartupScript"]
        body = {"fingerprint": (live.get("metadata") or {}).get("fingerprint")} | metadata_items(metadata)
        change.run("POST", f"{change.path}/setMetadata", body)
    if change.touches("tags"):
        tags = {"fingerprint": (live.get("tags") or {}).get("fingerprint"), "items": change.new.get("tags") or []}
        change.run("POST", f"{change.path}/setTags", tags)
    if change.touches("labels"):
        labels = {"labelFingerprint": live.get("labelFingerprint"), "labels": with_provisioned(change.new)}
        change.run("POST", f"{change.path}/setLabels", labels)
    if change.touches("deletionProtection"):
        wanted = str(bool(change.new.get("deletionProtection"))).lower()
        change.run("POST", f"{change.path}/setDeletionProtection", None, deletionProtection=wanted)
    if change.touches("desiredStatus"):
        action = {"RUNNING": "start", "TERMINATED": "stop"}.get(str(change.new.get("desiredStatus")))
        if action:
            change.run("POST", f"{change.path}/{action}", None)


INSTANCE = ResourceType(
    pulumi_type="gcp:compute/instance:Instance",
    collection="projects/{project}/zones/{zone}/instances",
    fields=Fields(_FIELDS),
    computed=(
        "selfLink",
        "creationTimestamp",
        "labelFingerprint",
        "instanceId",
        "currentStatus",
        "cpuPlatform",
        "metadataFingerprint",
        "tagsFingerprint",
        "effectiveLabels",
        "pulumiLabels",
    ),
    labelled=True,
    shape=_shape,
    unshape=_unshape,
    more=_extra,
    view={"view": "FULL"},
    update=_update,
)

TYPES = (INSTANCE,)
