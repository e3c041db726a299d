"""Single VMs."""

from __future__ import annotations

from dataclasses import replace

from multinic.lab.pulumi import links
from multinic.lab.pulumi.fields import Field, Fields, block, blocks
from multinic.lab.pulumi.kinds import Integer, Link, Scope, Strings, Text
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
    optional,
    with_provisioned,
)
from multinic.lab.pulumi.types.vm_fields import (
    MACHINE,
    NIC_FIELDS,
    Image,
    machine,
    machine_metadata,
    machine_outputs,
    read_machine,
)

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

_FOR_GOOD = ("metadataStartupScript", "confidentialInstanceConfig", "networkPerformanceConfig")

_FIELDS = (
    NAME,
    PROJECT,
    ZONE,
    DELETION_POLICY,
    LABELS,
    Field("machineType", Link("machineTypes", "zone"), required=True),
    Field("bootDisk", _BOOT_DISK, required=True, replaces=True),
    Field("networkInterfaces", blocks(*NIC_FIELDS), required=True, replaces=True),
    Field("deletionProtection", FLAG, default=False),
    Field("allowStoppingForUpdate", FLAG, sent=False),
    Field("description"),
    Field("desiredStatus", Text(choices=("RUNNING", "TERMINATED", "SUSPENDED")), sent=False),
    fixed("hostname"),
    # "forces the instance to be recreated": the plugin's documentation of the startup script apart from the metadata.
    *(replace(field, replaces=True) if field.name in _FOR_GOOD else field for field in MACHINE),
)


def _shape(body: Document, inputs: Inputs, _scope: Scope) -> Document:
    disk = {"boot": True} | body.pop("bootDisk")
    disk.pop("deviceName", None)
    sent = machine(body, inputs, scheduling={"automaticRestart": True}, untagged={})
    return sent | {"disks": [disk], "params": {}}


def _read_boot_disk(live: Document, scope: Scope) -> Document:
    """Add the boot disk, which knows what it was made from."""
    boot = next((disk for disk in live.get("disks", []) if disk.get("boot") and disk.get("source")), None)
    if boot is None:
        return live
    return live | {"bootDisk": boot | {"disk": scope.rest.get(links.path_of(boot["source"]))}}


def _unshape(live: Document, inputs: Inputs) -> Document:
    boot = dict(live.get("bootDisk") or {})
    disk = boot.pop("disk", None)
    if "source" not in (inputs.get("bootDisk") or {}):
        boot.pop("source", None)
    if disk:
        boot["initializeParams"] = {
            "sourceImage": disk.get("sourceImage"),
            "diskSizeGb": disk.get("sizeGb"),
            "diskType": links.name_of(disk.get("type", "")),
            "labels": disk.get("labels"),
        }
    return read_machine(live, inputs) | {"bootDisk": boot}


def _extra(live: Document, _scope: Scope) -> Outputs:
    nics = [
        {"name": nic.get("name", ""), "networkIp": nic.get("networkIP", "")} | _nic_links(nic)
        for nic in live.get("networkInterfaces", [])
    ]
    return {
        "instanceId": str(live.get("id", "")),
        "currentStatus": live.get("status", ""),
        "cpuPlatform": live.get("cpuPlatform", ""),
        "networkInterfaces": nics,
    } | machine_outputs(live)


def _nic_links(nic: Document) -> Document:
    found: Document = {key: links.as_v1(nic[key]) for key in ("network", "subnetwork") if key in nic}
    found |= {key: nic[key] for key in ("nicType", "queueCount", "stackType") if key in nic}
    configs = [{"natIp": config.get("natIP", "")} for config in nic.get("accessConfigs", [])]
    return found | ({"accessConfigs": configs} if configs else {})


_AT_REST = ("machineType", "minCpuPlatform", "serviceAccount", "shieldedInstanceConfig")
"""What is changed of a stopped VM only."""

_CHANGEABLE = {
    "metadata",
    "tags",
    "labels",
    "scheduling",
    "deletionProtection",
    "desiredStatus",
    "allowStoppingForUpdate",
    "deletionPolicy",
    *_AT_REST,
}


def _update(change: Change) -> None:
    beyond = sorted(change.changed - _CHANGEABLE)
    if beyond:
        raise ApiError(
            0, "", f"the lab cannot change {', '.join(beyond)} of an instance in place: delete it and make it anew"
        )
    live = change.live
    if change.touches("metadata"):
        body = {"fingerprint": (live.get("metadata") or {}).get("fingerprint")} | machine_metadata(change.new)
        change.run("POST", f"{change.path}/setMetadata", body)
    if change.touches("tags"):
        tags = {"fingerprint": (live.get("tags") or {}).get("fingerprint"), "items": change.new.get("tags") or []}
        change.run("POST", f"{change.path}/setTags", tags)
    if change.touches("labels"):
        labels = {"labelFingerprint": live.get("labelFingerprint"), "labels": with_provisioned(change.new)}
        change.run("POST", f"{change.path}/setLabels", labels)
    if change.touches("scheduling"):
        body = INSTANCE.fields.encode(change.new, change.scope)
        change.run("POST", f"{change.path}/setScheduling", body.get("scheduling") or {})
    if change.touches("deletionProtection"):
        wanted = str(bool(change.new.get("deletionProtection"))).lower()
        change.run("POST", f"{change.path}/setDeletionProtection", None, deletionProtection=wanted)
    if change.touches(*_AT_REST):
        _update_at_rest(change)
    elif change.touches("desiredStatus"):
        action = {"RUNNING": "start", "TERMINATED": "stop"}.get(str(change.new.get("desiredStatus")))
        if action:
            change.run("POST", f"{change.path}/{action}", None)


def _update_at_rest(change: Change) -> None:
    """Stop a VM, change what cannot be changed while it runs, and start it again where it is to run."""
    status, wanted = change.live.get("status"), change.new.get("desiredStatus")
    if status == "RUNNING" and wanted != "TERMINATED" and not change.new.get("allowStoppingForUpdate"):
        changed = ", ".join(name for name in _AT_REST if change.touches(name))
        raise ApiError(
            0,
            "",
            f"Changing {changed} of a started instance requires stopping it: allow that by allowStoppingForUpdate",
        )
    if status != "TERMINATED":
        change.run("POST", f"{change.path}/stop", None)
    body = INSTANCE.fields.encode(change.new, change.scope)
    if change.touches("minCpuPlatform"):
        change.run("POST", f"{change.path}/setMinCpuPlatform", {"minCpuPlatform": body.get("minCpuPlatform", "")})
    if change.touches("machineType"):
        change.run("POST", f"{change.path}/setMachineType", {"machineType": body["machineType"]})
    if change.touches("serviceAccount"):
        change.run("POST", f"{change.path}/setServiceAccount", (body.get("serviceAccounts") or [{"email": ""}])[0])
    if change.touches("shieldedInstanceConfig"):
        shielded = body.get("shieldedInstanceConfig") or {}
        change.run("PATCH", f"{change.path}/updateShieldedInstanceConfig", shielded)
    if (status == "RUNNING" and wanted != "TERMINATED") or wanted == "RUNNING":
        change.run("POST", f"{change.path}/start", None)


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
    read_more=_read_boot_disk,
    unshape=_unshape,
    more=_extra,
    view={"view": "FULL"},
    update=_update,
)

TYPES = (INSTANCE,)
