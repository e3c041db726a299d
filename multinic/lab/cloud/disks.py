"""Disks: what an instance boots from. In the lab a disk is a record; its content is the guest's own.

https://cloud.google.com/compute/docs/disks
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer
from .errors import ApiError, already_exists
from .links import key_of, link, name_of, split
from .resource import Resource
from .store import Object


class Disks(Resource):
    """``disks``: zonal; made and deleted with their instances."""

    collection = "disks"
    noun = "disk"
    kind = "disk"
    served: ClassVar = {"zones": "disks"}
    verbs = ("get", "list", "aggregatedList", "delete", "setLabels", "testIamPermissions")

    def make_for(self, zone: str, instance: Object) -> set[str]:
        """Makes the disks that an instance asks for, or none; gives their keys."""
        names = []
        for index, disk in enumerate(instance["disks"]):
            params = disk.get("initializeParams") or {}
            name = params.get("diskName") or (instance["name"] if index == 0 else f"{instance['name']}-{index}")
            if disk.get("source"):
                raise ApiError(501, "notImplemented", "The lab does not serve disks made before their instance.")
            if self.store.get(self.key(f"zones/{zone}", name)) is not None:
                raise already_exists(self.key(f"zones/{zone}", name))
            names.append(name)
        made: set[str] = set()
        for name, disk in zip(names, instance["disks"], strict=True):
            key = self._make(zone, name, disk)
            disk.pop("initializeParams", None)
            disk.update(
                source=link(key),
                diskSizeGb=self.store.require(key)["sizeGb"],
                deviceName=disk.get("deviceName") or f"persistent-disk-{disk['index']}",
            )
            made.add(key)
        return made

    def _make(self, zone: str, name: str, attached: Object) -> str:
        key = self.key(f"zones/{zone}", name)
        params = attached.get("initializeParams") or {}
        image = newest(params.get("sourceImage", ""))
        kind = name_of(params.get("diskType") or "pd-standard")
        value: Object = {
            "name": name,
            "sizeGb": str(params.get("diskSizeGb") or attached.get("diskSizeGb") or "10"),
            "status": "READY",
            "type": link(f"projects/{self.project}/zones/{zone}/diskTypes/{kind}"),
            "sourceImage": image,
            "labels": params.get("labels") or {},
            "physicalBlockSizeBytes": "4096",
            "architecture": "X86_64",
        }
        self.create(key, value)
        return key

    @override
    def view(self, key: str, value: Object) -> Answer:
        return {**super().view(key, value), "users": [link(user) for user in self.store.users(key)]}


def newest(image: str) -> str:
    """The image that a link means: a family's newest, or itself."""
    if not image or "/images/family/" not in image:
        return image
    parts = split(key_of(image))
    found = catalog.family(parts.project, parts.name)
    return link(found.key) if found else image
