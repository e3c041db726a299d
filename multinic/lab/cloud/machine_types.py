"""Machine types.

https://cloud.google.com/compute/docs/machine-resource
"""

from __future__ import annotations

import zlib
from typing import ClassVar

from typing_extensions import override

from . import catalog
from .call import Answer, Call
from .errors import not_found
from .links import link, name_of
from .resource import Resource


class MachineTypes(Resource):
    """``machineTypes``: the same ones in every zone of the lab."""

    collection = "machineTypes"
    noun = "machine_type"
    kind = "machineType"
    served: ClassVar = {"zones": "machineTypes"}
    verbs = ("get", "list", "aggregatedList")

    def _machine_type(self, zone: str, machine: catalog.MachineType) -> Answer:
        return {
            "kind": "compute#machineType",
            "id": str(10**6 + zlib.crc32(machine.name.encode())),
            "name": machine.name,
            "description": f"{machine.cpus} vCPUs, {machine.memory / 1024:g} GB RAM",
            "guestCpus": machine.cpus,
            "memoryMb": machine.memory,
            "isSharedCpu": machine.name in ("e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"),
            "maximumPersistentDisks": 128,
            "maximumPersistentDisksSizeGb": "263168",
            "zone": zone,
            "selfLink": link(f"projects/{self.project}/zones/{zone}/machineTypes/{machine.name}"),
            "creationTimestamp": self.cloud.began,
        }

    @override
    def get(self, call: Call) -> Answer:
        self.cloud.require_place(call.scope)
        machine = catalog.machine_type(call.params["machineType"])
        if machine is None:
            raise not_found(self.key(call.scope, call.params["machineType"]))
        return self._machine_type(call.params["zone"], machine)

    @override
    def list_all(self, call: Call) -> Answer:
        self.cloud.require_place(call.scope)
        return self.listing(f"projects/{self.project}/{call.scope}/machineTypes", self._all(call.params["zone"]))

    @override
    def aggregated_list(self, call: Call) -> Answer:
        items = {scope: {self.collection: self._all(name_of(scope))} for scope in self.cloud.places(self.served)}
        return {**super().aggregated_list(call), "items": items}

    def _all(self, zone: str) -> list[Answer]:
        return [self._machine_type(zone, machine) for _, machine in sorted(catalog.MACHINE_TYPES.items())]
