"""Disks: what an instance boots from. In the lab a disk is a record; its content is the guest's own.

https://cloud.google.com/compute/docs/disks
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer
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

    def make(self, zone: str, name: str, attached: Object) -> str:
        """Makes the disk that an instance asks for; gives its key."""
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
